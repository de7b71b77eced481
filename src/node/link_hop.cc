// SPDX-License-Identifier: Apache-2.0
//
// The hop of a traveller: a call comes, runs, and sends itself on. Hot: what these functions touch, and every line of
// their code, is cold again when the kernel has sent a message, or when another node has had the core.
#include "node/link.h"
#include "node/node.h"

namespace tc::node {

[[gnu::hot]] bool Link::run_at_once(const wire::Header& header, std::byte* body) {
  const bool in_order = state_ == State::ready && trusted_ && !look_again_ && parked_bytes_ == 0;
  if (!in_order || !wire::are_call_flags(header.flags) || node_.deaths().snapshots().recording()) [[unlikely]]
    return false;
  auto* const code = numbers_.find(header.number);
  if (code == nullptr) [[unlikely]]
    return false;
  node_.executor().running().link = this;
  (void)run(*code, header.flags, body, header.length);  // it may end the link
  if ((uncredited_ += wire::stride(header.length)) >= credit_step_ / 4) [[unlikely]] {
    uncredited_ = 0;
    give_credit(false);
  }
  return true;
}

[[gnu::hot]] bool Link::run(target::Code& code, uint8_t flags, std::byte* body, size_t length) {
  auto& executor = node_.executor();
  auto& call = executor.running();
  size_t skip = 0;
  if ((flags & wire::flag_token) != 0) {
    if (length < wire::ticket_bytes)
      return on_broken(fmt::format("a call with a token is {} bytes when the token alone takes {}", length,
                                   wire::ticket_bytes)),
             false;
    call.ticket = wire::read_ticket(body);
    call.has_ticket = true;
    call.wants_reply = call.ticket.token != 0;
    skip = wire::ticket_bytes;
  }
  if ((flags & wire::flag_route) != 0) {
    const auto taken = call.route.take({body + skip, length - skip});
    if (!taken) return executor.reset(), on_broken(taken.error().message), false;
    call.has_route = true;
    skip += *taken;
  }
  call.touched = flags != 0;
  std::byte* payload = body + skip;
  const auto size = length - skip;
  const auto alignment = size_t{1} << code.alignment_log2;
  if (reinterpret_cast<uintptr_t>(payload) % alignment != 0) {
    scratch_.resize(size + alignment);
    std::byte* const aligned =
        scratch_.data() + (alignment - reinterpret_cast<uintptr_t>(scratch_.data()) % alignment) % alignment;
    if (size != 0) std::memcpy(aligned, payload, size);
    payload = aligned;
  }
  if (!executor.run_plain(code, payload, size)) on_touched();
  return true;
}

[[gnu::hot]] void Link::on_touched() {
  node_.finish(node_.executor().running());
  node_.executor().reset();
}

// The next hop, to a peer that has the code. False: send_call() sees to it.
[[gnu::hot]] bool Link::try_pass_on(const Outgoing& call) noexcept {
  const auto route = call.route != nullptr ? call.route->bytes() : ByteView{};
  const auto size = wire::ticket_bytes + route.size() + call.payload.size();
  if (size > most_at_once_ || passed_number_ == source::CodeTable::none) return false;
  if (call.code != nullptr ? call.code != passed_code_ : call.bundle->id() != passed_on_) return false;
  std::byte* const frame = out_->reserve(size);
  if (frame == nullptr) return false;
  auto* at = frame + wire::header_bytes;
  wire::write_ticket(at, *call.ticket);
  at += wire::ticket_bytes;
  if (!route.empty()) std::memcpy(at, route.data(), route.size());
  if (!call.payload.empty()) std::memcpy(at + route.size(), call.payload.data(), call.payload.size());
  const auto flags = static_cast<uint8_t>(wire::flag_token | (route.empty() ? 0 : wire::flag_route));
  out_->commit_alone(wire::encode(wire::Kind::call, flags, passed_number_, static_cast<uint32_t>(size)));
  return true;
}

}  // namespace tc::node
