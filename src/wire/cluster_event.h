// SPDX-License-Identifier: Apache-2.0
//
// Cluster events: what nodes tell each other so that no caller waits for the answer to a call that was lost with a node
// (src/node/liveness). They are frames of the stream; the frame's number says which event it is.
//
// Thread: any; plain values.
#pragma once

#include "base/bytes.h"

namespace tc::wire {

inline constexpr uint32_t event_gone = 0;
inline constexpr uint32_t event_marker = 1;
inline constexpr uint32_t event_report = 2;

// A node lost its link to another. Every node passes it on once.
struct Gone {
  uint64_t instance = 0;  // the node that is gone
  uint64_t witness =
      0;  // the node that lost its link: its instance, and one more with each link; so each event is its own
  uint32_t node_id = 0;
  std::string name;    // label of the node that is gone; printable
  std::string reason;  // readable
};
Bytes encode_gone(const Gone& gone);
Result<Gone> decode_gone(ByteView body);

// The marker of Chandy and Lamport's snapshot: what came before it on this link belongs to the snapshot.
inline constexpr uint8_t marker_from_child =
    1;  // the receiver brought the sender into the snapshot: it gets the report
inline constexpr uint8_t marker_unrecorded = 2;  // this link is younger than the sender's part: the snapshot is void
struct Marker {
  uint64_t origin = 0;  // instance of the node that started the snapshot
  uint32_t number = 0;  // grows with every snapshot of that origin
  uint8_t flags = 0;
};
Bytes encode_marker(const Marker& marker);
Result<Marker> decode_marker(ByteView body);

// What a node and those that heard of the snapshot through it found.
struct Report {
  uint64_t origin = 0;
  uint32_t number = 0;
  bool is_void = false;          // a node or link came or went meanwhile: it proves nothing
  std::vector<uint64_t> tokens;  // calls of the origin that are alive, in no order
};
Bytes encode_report(const Report& report);
Result<Report> decode_report(ByteView body);

}  // namespace tc::wire
