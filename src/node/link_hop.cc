// SPDX-License-Identifier: Apache-2.0
//
// The hop of a traveller: a call comes, runs, and sends itself on. Hot: what these functions touch, and every line of
// their code, is cold again when the kernel has sent a message, or when another node has had the core. So what a hop
// does not need stands in functions of its own, and what it needs is one piece from the message to the next one.
#include "node/link.h"
#include "node/node.h"

namespace tc::node {

// ---- A call comes, and runs

[[gnu::hot]] bool Node::on_call(void* owner, const wire::Header& header, std::byte* body) {
  auto* const link = static_cast<Link*>(owner);
  if (link == nullptr) return false;
  before_calls();
  const target::Executor::Scope scope(executor_);
  if (!link->run_at_once(header, body)) return false;
  ++ran_at_once_;
  return true;
}

[[gnu::always_inline]] inline bool Link::run_at_once(const wire::Header& header, std::byte* body) {
  const bool in_order = state_ == State::ready && trusted_ && !look_again_ && parked_bytes_ == 0;
  if (!in_order || !wire::are_call_flags(header.flags) || node_.deaths().snapshots().recording()) [[unlikely]]
    return false;
  auto* const code = numbers_.find(header.number);
  if (code == nullptr) [[unlikely]]
    return false;
  node_.executor().running().link = this;
  (void)run_here(*code, header.flags, body, header.length);  // it may end the link
  if ((uncredited_ += wire::stride(header.length)) >= credit_step_ / 4) [[unlikely]] {
    uncredited_ = 0;
    give_credit(false);
  }
  return true;
}

[[gnu::always_inline]] inline bool Link::run_here(target::Code& code, uint8_t flags, std::byte* body, size_t length) {
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
    const ByteView rest(body + skip, length - skip);
    auto taken = call.route.size_if_same(rest);
    if (taken == 0) [[unlikely]]
      if (taken = take_route(rest); taken == 0) return false;
    call.has_route = true;
    skip += taken;
  }
  call.touched = flags != 0;
  std::byte* payload = body + skip;
  const auto size = length - skip;
  if (reinterpret_cast<uintptr_t>(payload) % (size_t{1} << code.alignment_log2) != 0) [[unlikely]]
    payload = aligned_copy({payload, size}, size_t{1} << code.alignment_log2);
  if (!executor.run_plain(code, payload, size)) on_touched();
  return true;
}

bool Link::run(target::Code& code, uint8_t flags, std::byte* body, size_t length) {
  return run_here(code, flags, body, length);
}

bool Link::on_short_token(size_t length) {
  on_broken(fmt::format("a call with a token is {} bytes when the token alone takes {}", length, wire::ticket_bytes));
  return false;
}

// Of another asker than the call before. 0: there is none, and the link is broken.
size_t Link::take_route(ByteView body) {
  auto& executor = node_.executor();
  const auto taken = executor.running().route.take(body);
  if (taken) return *taken;
  executor.reset();
  on_broken(taken.error().message);
  return 0;
}

std::byte* Link::aligned_copy(ByteView payload, size_t alignment) {
  scratch_.resize(payload.size() + alignment);
  const auto over = reinterpret_cast<uintptr_t>(scratch_.data()) % alignment;
  std::byte* const aligned = scratch_.data() + (alignment - over) % alignment;
  if (!payload.empty()) std::memcpy(aligned, payload.data(), payload.size());
  return aligned;
}

void Link::on_touched() {
  node_.finish(node_.executor().running());
  node_.executor().reset();
}

// ---- It sends itself on

// The next hop of a call that brought the way home, to a node where its code went before. Else forward_call() sees to it.
[[gnu::hot]] tc_status_t Node::forward(uint32_t node, ByteView payload) noexcept {
  auto& call = executor_.running();
  const target::Code* const code = call.code;
  const bool travels = call.has_route && call.wants_reply && !call.answered && call.ticket.hops_left != 0;
  const NextHop* const hop = next_hops_.find(node, code);
  if (travels && hop != nullptr && !call.route.route().address.empty()) [[likely]] {
    auto ticket = call.ticket;
    --ticket.hops_left;
    if (hop->send(ticket, call.route.bytes(), payload)) [[likely]] {
      call.touched = call.answered = true;
      return TC_OK;
    }
  }
  return forward_call(node, {.bundle = code->bundle.get(), .code = code, .payload = payload});
}

}  // namespace tc::node
