// SPDX-License-Identifier: Apache-2.0
//
// Cluster events. Nodes send them to each other, so that no caller waits for the answer to a call that was lost with a
// node (src/node/liveness). They are frames of the stream. The frame's number says which event it is.
//
// Threads: any; plain values.
#pragma once

#include "base/bytes.h"

namespace tc::wire {

inline constexpr uint32_t event_gone = 0;
inline constexpr uint32_t event_marker = 1;
inline constexpr uint32_t event_report = 2;

// A node lost its link to another. Every node passes it on once.
struct Gone {
  uint64_t instance = 0;  // the node that is gone
  // Instance of the node that lost its link, plus one for each link that it lost before. So each event has its own
  // number.
  uint64_t witness = 0;
  uint32_t node_id = 0;
  std::string name;    // label of the node that is gone; printable
  std::string reason;  // readable
};
Bytes encode_gone(const Gone& gone);
Result<Gone> decode_gone(ByteView body);

// The marker of Chandy and Lamport's snapshot: frames before it on this link belong to the snapshot.
// Flag: the receiver brought the sender into the snapshot, so the sender reports to it.
inline constexpr uint8_t marker_from_child = 1;
// Flag: this link is younger than the sender's part of the snapshot, so the snapshot is void.
inline constexpr uint8_t marker_unrecorded = 2;
struct Marker {
  uint64_t origin = 0;  // instance of the node that started the snapshot
  uint32_t number = 0;  // grows with every snapshot of that origin
  uint8_t flags = 0;
};
Bytes encode_marker(const Marker& marker);
Result<Marker> decode_marker(ByteView body);

// What a node found for a snapshot, together with the nodes that it brought into the snapshot.
struct Report {
  uint64_t origin = 0;
  uint32_t number = 0;
  bool is_void = false;          // a node or link came or went meanwhile, so the snapshot proves nothing
  std::vector<uint64_t> tokens;  // calls of the origin that are alive, in no order
};
Bytes encode_report(const Report& report);
Result<Report> decode_report(ByteView body);

}  // namespace tc::wire
