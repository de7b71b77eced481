// SPDX-License-Identifier: Apache-2.0
//
// What becomes of frames that came in pieces (pieces.h).
#include "node/link/link.h"

namespace tc::node {

bool Link::on_fragment(uint32_t mark, ByteView piece) {
  if (mark > last_piece)
    return channel_.disconnect_for(fmt::format("a fragment is marked {} when 0 and 1 are known", mark));
  const auto added = assembly_.add(piece, mark == last_piece);
  if (!added) return channel_.disconnect_for(added.error().message);
  return *added ? on_whole(assembly_.take()) : true;
}

bool Link::on_whole(Assembly::Whole whole) {
  if (whole.refused) return refuse_whole(whole);
  if (whole.header.kind == wire::Kind::reply) return on_large_reply(std::move(whole));
  return on_frame(whole.header, whole.body);
}

// Its bytes stay where they were put together: the future gets that memory.
bool Link::on_large_reply(Assembly::Whole whole) {
  const auto reply = wire::decode_reply({whole.body, whole.header.length});
  if (!reply) return channel_.disconnect_for(reply.error().message);
  answers_.complete(*reply, std::move(whole.memory));
  return true;
}

// There was no memory for it: whoever waits for its answer, or for it, is told.
bool Link::refuse_whole(const Assembly::Whole& whole) {
  const auto& [header, body, memory, why, beginning] = whole;
  const Error told{why->code, fmt::format("{} bytes came from {}: {}", header.length, peer_label(), why->message)};
  if (header.kind == wire::Kind::call || header.kind == wire::Kind::call_code) {
    receiver_.refuse({header.kind, header.flags, header.number, static_cast<uint32_t>(beginning.size())}, beginning,
                     told);
    return true;
  }
  const auto reply = header.kind == wire::Kind::reply ? wire::decode_reply(beginning) : fail(told);
  if (!reply) return channel_.disconnect(told), false;
  answers_.complete({.token = reply->token, .status = told.code, .node_id = self_.wire_id(), .message = told.message});
  return true;
}

}  // namespace tc::node
