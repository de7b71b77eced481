// SPDX-License-Identifier: Apache-2.0
//
// The hop of a traveller: a call comes, runs, and sends itself on. Hot: what these functions touch, and every line of
// their code, is cold again when the kernel has sent a message, or when another node has had the core. So what a hop
// does not need stands in functions of its own, and what it needs is one piece from the message to the next one.
#include "base/hot_page.h"
#include "node/link.h"
#include "node/node.h"

namespace tc::node {

// ---- A call comes, and runs

TC_ON_HOT_PAGE bool Node::on_call(transport::Connection& connection, uint32_t index, const wire::Header& header,
                                  std::byte* body) {
  before_calls();
  const target::Executor::Scope scope(executor_);
  LastCall* const last = last_calls_.take(index, header);
  if (last != nullptr && wire::are_call_flags(header.flags)) [[likely]] {
    auto& call = executor_.running();
    call.link = last->link;
    const bool has_route = !wire::takes_kept_route(header.flags) || last->route_mark == call.route_mark;
    if (has_route || recall_route(*last)) [[likely]]
      (void)run_call(*last->link, *last->code, header.flags, body, header.length);  // it may end the link
  } else {
    auto* const link = static_cast<Link*>(connection.owner());
    if (link == nullptr || !link->run_at_once(index, header, body)) return false;
  }
  ++ran_at_once_;
  return true;
}

bool Node::recall_route(LastCall& last) {
  if (!last.link->recall_route()) return false;
  last.route_mark = executor_.running().route_mark;
  return true;
}

bool Link::run_at_once(uint32_t index, const wire::Header& header, std::byte* body) {
  const bool in_order = state_ == State::ready && trusted_ && !look_again_ && parked_bytes_ == 0;
  if (!in_order || !wire::are_call_flags(header.flags) || node_.deaths().snapshots().recording()) return false;
  auto* const code = numbers_.find(header.number);
  if (code == nullptr) return false;
  give_credit(false);
  // What running it changes is forgotten again.
  node_.note_call(
      index,
      {.link = this, .code = code, .number = header.number, .bytes_left = static_cast<uint32_t>(credit_step_ / 4)});
  node_.executor().running().link = this;
  (void)run(*code, header.flags, body, header.length);  // it may end the link
  return true;
}

[[gnu::always_inline]] inline bool Node::run_call(Link& link, target::Code& code, uint8_t flags, std::byte* body,
                                                  size_t length) {
  auto& call = executor_.running();
  size_t skip = 0;
  if ((flags & wire::flag_token) != 0) {
    if (length < wire::ticket_bytes) [[unlikely]]
      return link.on_short_token(length);
    call.ticket = wire::read_ticket(body);
    call.has_ticket = true;
    call.wants_reply = call.ticket.token != 0;
    skip = wire::ticket_bytes;
  }
  if ((flags & wire::flag_route) != 0) [[unlikely]] {
    const auto taken = link.take_route({body + skip, length - skip});
    if (taken == 0) return false;
    if ((flags & wire::flag_kept_route) != 0) link.keep_route();
    skip += taken;
  }
  call.has_route = (flags & (wire::flag_route | wire::flag_kept_route)) != 0;
  call.touched = flags != 0;
  std::byte* payload = body + skip;
  const auto size = length - skip;
  if (reinterpret_cast<uintptr_t>(payload) % (size_t{1} << code.alignment_log2) != 0) [[unlikely]]
    payload = aligned_copy(link.scratch_, {payload, size}, size_t{1} << code.alignment_log2);
  if (!executor_.run_plain(code, payload, size)) end_running_call();
  return true;
}

bool Link::run(target::Code& code, uint8_t flags, std::byte* body, size_t length) {
  if (wire::takes_kept_route(flags) && !recall_route()) return false;
  return node_.run_call(*this, code, flags, body, length);
}

bool Link::on_short_token(size_t length) {
  on_broken(fmt::format("a call with a token is {} bytes when the token alone takes {}", length, wire::ticket_bytes));
  return false;
}

// The bytes of the route in front of `body`. 0: there is none, and the link is broken.
size_t Link::take_route(ByteView body) {
  const auto taken = node_.executor().running().take_route(body);
  if (taken) return *taken;
  on_broken(taken.error().message);
  return 0;
}

void Link::keep_route() {
  const auto& route = node_.executor().running().route;
  if (!kept_route_ || !route.is(*kept_route_)) kept_route_ = route;
}

// False: there is none, and the link is broken.
bool Link::recall_route() {
  if (kept_route_) return node_.executor().running().take_route(*kept_route_), true;
  return on_no_kept_route();
}

bool Link::on_no_kept_route() {
  on_broken("a call wants the route that was kept when none was");
  return false;
}

void Link::on_touched() { node_.end_running_call(); }

// ---- It sends itself on

// The next hop of a call that brought the way home, to a node where its code went before. Else forward_call() sees to it.
TC_ON_HOT_PAGE tc_status_t Node::forward(uint32_t node, ByteView payload) noexcept {
  auto& call = executor_.running();
  const target::Code* const code = call.code;
  const bool travels = call.has_route && call.wants_reply && !call.answered && call.ticket.hops_left != 0;
  NextHop* const hop = next_hops_.find(node, code);
  if (travels && hop != nullptr) [[likely]] {
    auto ticket = call.ticket;
    --ticket.hops_left;
    constexpr uint8_t flags = wire::flag_token | wire::flag_kept_route;
    const bool sent = hop->keeps(call.route_mark) ? hop->send(*transport_, flags, {wire::bytes_of(ticket), payload})
                                                  : forward_with_route(*hop, ticket, payload);
    if (sent) [[likely]] {
      call.touched = call.answered = true;
      return TC_OK;
    }
  }
  return forward_call(node, {.bundle = code->bundle.get(), .code = code, .payload = payload});
}

// The second call in a row with the same route asks the peer to keep it, and those behind it go without.
bool Node::forward_with_route(NextHop& hop, const wire::CallTicket& ticket, ByteView payload) noexcept {
  const auto& call = executor_.running();
  if (call.route.route().address.empty()) return false;
  const bool keep = hop.route_mark == call.route_mark;
  const auto flags = static_cast<uint8_t>(wire::flag_token | wire::flag_route | (keep ? wire::flag_kept_route : 0));
  if (!hop.send(*transport_, flags, {wire::bytes_of(ticket), call.route.bytes(), payload})) return false;
  hop.route_mark = call.route_mark;
  hop.keeps_route = keep ? 1 : 0;
  return true;
}

}  // namespace tc::node
