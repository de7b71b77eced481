// SPDX-License-Identifier: Apache-2.0
//
// Where are my calls? A call that forwards itself is at one node, or on one link, at a time, and only that place
// knows of it: nothing is recorded on its way, so that a hop costs nothing more. When a node dies, whoever waits
// asks: a snapshot of all nodes and links, taken while calls travel on (Chandy and Lamport, "Distributed Snapshots",
// 1985), gathered on the tree along which it spread. A call that is nowhere in it is lost.
//
// How it goes. The origin sends a marker on each of its links. A node that sees a snapshot's first marker notes the
// calls it holds, sends markers on each of its links, and from then on notes the calls that come by a link until that
// link's marker has come: they were on their way. Links are ordered, so nothing slips through. When all markers are
// there, and the reports of all nodes that heard of it from here, the node reports to the one it heard of it from.
// A link that a node did not have when it noted its own calls makes the snapshot void; so does one that was lost.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "wire/notice.h"

namespace tc::node {

class Link;
class Node;

class Snapshots {
 public:
  // What an own snapshot found. `is_void`: take another one.
  using Done = std::function<void(bool is_void, const std::unordered_set<uint64_t>& alive)>;

  Snapshots(Node& node, Done done) : node_(node), done_(std::move(done)) {}

  // Asks where this node's calls are. An earlier question of ours that is still open is dropped.
  void ask();

  void on_marker(Link& from, const wire::Marker& marker);
  void on_report(Link& from, const wire::Report& report);
  void on_link_lost(const Link& link);

  // Is any part of a snapshot being taken here? Then every call that comes must be shown to note().
  bool recording() const noexcept { return recording_ != 0; }
  // A call of the node `asker` came by `link`.
  void note(const Link& link, uint64_t asker, uint64_t token);

 private:
  // Our part of one snapshot.
  struct Part {
    uint32_t number = 0;
    Link* parent = nullptr;          // through whom we heard of it; null: it is ours
    std::vector<const Link*> links;  // that we had when we noted our own calls
    std::vector<const Link*> markers_due;
    std::vector<const Link*> reports_due;
    std::unordered_set<uint64_t> alive;
    bool is_void = false;
    bool done = false;
  };

  void begin(uint64_t origin, uint32_t number, Link* parent);
  void add(Part& part, uint64_t token);
  void settle(uint64_t origin, Part& part);
  bool make_room();
  void drop(std::unordered_map<uint64_t, Part>::iterator part);

  Node& node_;
  Done done_;
  uint32_t number_ = 0;                       // of our own last snapshot
  std::unordered_map<uint64_t, Part> parts_;  // by origin: of each only the newest
  size_t recording_ = 0;                      // parts that are not done
};

}  // namespace tc::node
