// SPDX-License-Identifier: Apache-2.0
//
// Notices: what nodes tell each other so that nobody waits for the answer of a call that was lost with a node
// (src/node/deaths.h, src/node/snapshot.h). Frames of the stream; which one it is stands in the number.
#pragma once

#include "base/bytes.h"

namespace tc::wire {

inline constexpr uint32_t notice_gone = 0;
inline constexpr uint32_t notice_marker = 1;
inline constexpr uint32_t notice_report = 2;

// A node lost its link to another. Every node passes it on once.
struct Gone {
  uint64_t instance = 0;  // who is gone
  uint64_t witness = 0;   // instance of the node whose link ended; another witness is other news
  uint32_t node_id = 0;
  std::string name;    // label of who is gone; printable
  std::string reason;  // readable
};
Bytes encode_gone(const Gone& gone);
Result<Gone> decode_gone(ByteView body);

// The marker of Chandy and Lamport's snapshot: what came before it on this link belongs to the snapshot.
inline constexpr uint8_t marker_from_child = 1;  // you are the one through whom I heard of it: expect my report
inline constexpr uint8_t marker_unrecorded = 2;  // this link is younger than my part of the snapshot: it is void
struct Marker {
  uint64_t origin = 0;  // instance of the node that asks where its calls are
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
