// SPDX-License-Identifier: Apache-2.0
//
// The life of a link around its calls: greeting, credit, goodbye.
#include <spdlog/logger.h>
#include <threechains/ifunc.h>

#include "node/link.h"
#include "node/node.h"

namespace tc::node {

namespace {
constexpr uint64_t small_credit_gap_ns = 5'000'000;
constexpr uint64_t greeting_limit_ns = 10'000'000'000;
}  // namespace

Status Link::greet() {
  wire::Hello hello;
  hello.protocol = wire::protocol_version;
  hello.abi = TC_IFUNC_ABI;
  hello.instance = node_.instance();
  hello.node_id = node_.wire_id();
  hello.max_message = node_.config().max_message;
  hello.name = node_.config().name;
  hello.address = node_.address();
  hello.triple = node_.config().code.triple.text;
  TC_ASSIGN(hello.offer, connection_->offer(node_.config().way));
  greeted_ = true;
  return connection_->send_control(wire::make_frame(wire::Kind::hello, 0, 0, wire::encode_hello(hello)));
}

Status Link::accept_hello(ByteView body) {
  if (state_ != State::greeting) return fail(TC_ERR_MALFORMED, "{} greets twice", peer_label());
  TC_ASSIGN(peer_, wire::decode_hello(body));
  TC_ASSIGN(peer_triple_, TargetTriple::parse(peer_.triple));
  if (peer_.abi != TC_IFUNC_ABI)
    return fail(TC_ERR_VERSION, "{} has ifunc ABI {} when this build has {}", peer_label(), peer_.abi, TC_IFUNC_ABI);
  trusted_ = node_.trusts(*this);
  if (!trusted_ && !initiator_) return fail(node_.not_trusted(*this));
  TC_CHECK(connection_->open_way(node_.config().way, peer_.offer));
  if (!greeted_) TC_CHECK(greet());
  announce_way();
  state_ = State::ready;
  label_.reset();
  update_open();
  node_.log().debug("{}: link is ready, frames go by {}", peer_label(), transport::way_name(connection_->way()));
  send_held();
  drain_backlog();
  node_.compile_requests().on_link_ready(*this);
  return {};
}

// The peer need not tell us what it consumed when we can see it, as on a ring.
void Link::announce_way() {
  const auto way = static_cast<uint64_t>(connection_->way());
  (void)connection_->send_control(
      wire::make_frame(wire::Kind::credit, 0, wire::credit_way, wire::encode_credit({way, 0})));
}

void Link::on_control(ByteView frame) {
  if (state_ == State::lost) return;
  Reader in(frame);
  const auto header = wire::decode(in.u64());
  const auto body = in.rest();
  if (header.length != body.size())
    return on_broken(fmt::format("a control frame is {} bytes when its header says {}", body.size(), header.length));
  if (header.kind == wire::Kind::hello) {
    if (const auto accepted = accept_hello(body); !accepted) hang_up(accepted.error());
    return;
  }
  if (header.kind == wire::Kind::bye) {
    const auto bye = wire::decode_bye(body);
    if (!bye) return on_broken(bye.error().message);
    const auto said = bye->status == TC_OK ? fmt::format("{} said goodbye", peer_label())
                                           : fmt::format("{} hung up: {}", peer_label(), bye->reason);
    return end(Error{bye->status == TC_OK ? TC_ERR_DISCONNECTED : bye->status, said});
  }
  if (header.kind != wire::Kind::credit)
    return on_broken(fmt::format("a frame of kind {} has no place beside the calls", static_cast<int>(header.kind)));
  const auto credit = wire::decode_credit(body);
  if (!credit) return on_broken(credit.error().message);
  on_beside(header.number, *credit);
}

void Link::on_beside(uint32_t about, const wire::Credit& credit) {
  if (state_ != State::ready) return on_broken("it gives credit before it greets");
  if (about == wire::credit_way)
    peer_way_ = static_cast<transport::Way>(credit.consumed & 0xff);
  else if (about != wire::credit_window)
    on_broken(fmt::format("a credit frame of type {} has no place beside the calls", about));
  else if (!out_->credit(credit.consumed))
    on_broken(
        fmt::format("it claims to have taken {} bytes, more than were sent or less than before", credit.consumed));
}

[[gnu::hot]] void Link::give_credit(bool idle) {
  if (peer_way_ == transport::Way::ring || state_ != State::ready) return;
  const auto consumed = in_->consumed();
  // Who puts learns from it that we may have fallen asleep. All others have room without small news (a frame takes at most
  // half a window), and in a cluster each node would wake every other one for it.
  const auto least = peer_way_ == transport::Way::put ? 1 : credit_step_ / 4;
  if (consumed - credited_ < (idle ? least : credit_step_)) return;
  if (idle) {  // small news can wait: each costs both sides a message
    const auto now = now_ns();
    if (now - credited_ns_ < small_credit_gap_ns) return;
    credited_ns_ = now;
  }
  if (connection_->send_control(
          wire::make_frame(wire::Kind::credit, 0, wire::credit_window, wire::encode_credit({consumed, 0}))))
    credited_ = consumed;
}

// What was accepted is run, whatever became of its sender: by receive(), as events come from inside the transport,
// where no ifunc may run.
void Link::end(const Error& reason) {
  if (state_ == State::lost || ending_) return;
  if (state_ == State::ready) {
    ending_ = reason;
    look_again_ = true;
    node_.forget_hops();
    return;
  }
  connection_->close();
  lose(reason);
}

// A frame that was taken over and will not be run: its sender learns of the loss itself, but not whoever waits
// behind a route.
void Link::answer_unrun(const wire::Header& header, ByteView body, const Error& reason) {
  constexpr auto flags = wire::flag_token | wire::flag_route;
  const bool is_call = header.kind == wire::Kind::call || header.kind == wire::Kind::call_code;
  if (!is_call || (header.flags & flags) != flags || body.size() < wire::ticket_bytes) return;
  size_t ignored = 0;
  if (const auto route = wire::decode_route(body.subspan(wire::ticket_bytes), ignored))
    node_.answer_for(wire::read_ticket(body.data()).token, &*route, reason);
}

void Link::lose(const Error& reason) {
  if (state_ == State::lost) return;
  state_ = State::lost;
  update_open();
  reason_ = reason;
  for (auto& held : held_)
    if (held.ticket) node_.answer_for(held.ticket->token, held.route ? &held.route->route() : nullptr, reason);
  held_.clear();
  for (const auto& queued : std::exchange(backlog_, {})) {
    const ByteView frame(queued.frame);
    answer_unrun(wire::decode(Reader(frame).u64()), frame.subspan(wire::header_bytes), reason);
  }
  for (const auto& parked : std::exchange(parked_, {})) answer_unrun(parked.header, parked.body, reason);
  node_.on_link_lost(*this);
}

void Link::hang_up(const Error& reason) {
  if (state_ == State::lost) return;
  const auto text = fmt::format("{}: {}", node_.label(), reason.message);
  (void)connection_->send_control(wire::make_frame(wire::Kind::bye, 0, 0, wire::encode_bye({reason.code, text})));
  connection_->close();
  lose(reason);
}

void Link::check_greeting() {
  if (state_ == State::greeting && now_ns() - born_ns_ > greeting_limit_ns)
    hang_up(Error{TC_ERR_TIMEOUT,
                  fmt::format("{} did not greet within {} s", peer_label(), greeting_limit_ns / 1'000'000'000)});
}

void Link::say_goodbye() {
  if (state_ == State::lost) return;
  out_->flush();
  (void)connection_->send_control(wire::make_frame(wire::Kind::bye, 0, 0, wire::encode_bye({TC_OK, "goodbye"})));
  connection_->close();
  lose(Error{TC_ERR_CLOSED, "the endpoint was closed here"});
}

}  // namespace tc::node
