// SPDX-License-Identifier: Apache-2.0
//
// Where are my calls? A call that forwards itself is at one node, or on one link, at a time, and only that place
// knows of it: nothing is recorded on its way, so that a hop costs nothing more. When a node dies, each node that
// waits for answers takes a snapshot of all nodes and links, while calls travel on (Chandy and Lamport, "Distributed
// Snapshots", 1985), gathered on the tree along which it spread. A call that is nowhere in it is lost.
//
// How it goes. The origin sends a marker on each of its links. A node that sees a snapshot's first marker records the
// calls it holds, sends markers on each of its links, and from then on records the calls that come by a link until that
// link's marker has come: they were on their way. Links are ordered, so nothing slips through. When all markers are
// there, and the reports of all nodes that heard of it from here, the node reports to the one it heard of it from.
// A link that a node did not have when it recorded its own calls makes the snapshot void; so does one that was lost.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/answers.h"
#include "wire/cluster_event.h"

namespace tc::node {

class Link;
class Links;

class Snapshots {
 public:
  // What an own snapshot found. `is_void`: take another one.
  using Done = std::function<void(bool is_void, const std::unordered_set<uint64_t>& alive)>;

  // Shows all calls with a token that are here, neither running nor passed on.
  using EachCall = std::function<void(ShowCall)>;

  Snapshots(Links& links, const Identity& self, EachCall each_call, Done done)
      : links_(links), self_(self), each_call_(std::move(each_call)), done_(std::move(done)) {}

  // Asks where this node's calls are. An earlier question of ours that is still open is dropped.
  void ask();

  void on_marker(Link& from, const wire::Marker& marker);
  void on_report(Link& from, const wire::Report& report);
  void on_link_lost(const Link& link);

  // Is any part of a snapshot being taken here? Then every call that comes must be shown to record_call().
  bool recording() const noexcept { return recording_ != 0; }
  // A call of the node `caller` came by `link`.
  void record_call(const Link& link, uint64_t caller, uint64_t token);

 private:
  // Our part of one snapshot.
  struct Part {
    uint32_t number = 0;
    Link* parent = nullptr;          // the link that brought it; null: it is ours
    std::vector<const Link*> links;  // that we had when we recorded our own calls
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

  Links& links_;
  const Identity& self_;
  EachCall each_call_;
  Done done_;
  uint32_t number_ = 0;                       // of our own last snapshot
  std::unordered_map<uint64_t, Part> parts_;  // by origin: of each only the newest
  size_t recording_ = 0;                      // parts that are not done
};

}  // namespace tc::node
