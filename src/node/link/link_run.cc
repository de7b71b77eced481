// SPDX-License-Identifier: Apache-2.0
//
// Running a call that came by a link, with its ticket and its route.
#include "node/link/link.h"
#include "node/node.h"

namespace tc::node {

bool Link::run(target::Code& code, uint8_t flags, std::byte* body, size_t length) {
  auto& executor = node_.executor();
  auto& call = executor.running();
  size_t skip = 0;
  if ((flags & wire::flag_token) != 0) {
    if (length < wire::ticket_bytes) [[unlikely]]
      return on_short_token(length);
    call.ticket = wire::read_ticket(body);
    call.has_ticket = true;
    call.wants_reply = call.ticket.token != 0;
    skip = wire::ticket_bytes;
  }
  if ((flags & wire::flag_route) != 0) {
    const auto taken = call.route.take({body + skip, length - skip});
    if (!taken) return on_broken(taken.error().message), false;
    skip += *taken;
    call.has_route = true;
  }
  call.touched = flags != 0;
  std::byte* payload = body + skip;
  const auto size = length - skip;
  if (reinterpret_cast<uintptr_t>(payload) % (size_t{1} << code.alignment_log2) != 0) [[unlikely]]
    payload = aligned_copy(scratch_, {payload, size}, size_t{1} << code.alignment_log2);
  if (!executor.run_plain(code, payload, size)) node_.end_running_call();
  return true;
}

bool Link::on_short_token(size_t length) {
  on_broken(fmt::format("a call with a token is {} bytes when the token alone takes {}", length, wire::ticket_bytes));
  return false;
}

void Link::on_touched() { node_.end_running_call(); }

}  // namespace tc::node
