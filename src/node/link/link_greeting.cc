// SPDX-License-Identifier: Apache-2.0
//
// The life of a link around its calls: greeting, BYE, loss.
#include <spdlog/logger.h>
#include <threechains/ifunc.h>

#include "node/link/link.h"
#include "node/node.h"

namespace tc::node {

Bytes Link::hello_of(const Node& node) {
  wire::Hello hello;
  hello.protocol = wire::protocol_version;
  hello.abi = TC_IFUNC_ABI;
  hello.instance = node.instance();
  hello.node_id = node.wire_id();
  hello.max_message = node.config().max_message;
  hello.name = node.config().name;
  hello.address = node.address();
  hello.triple = node.config().code.triple.text;
  return wire::encode_hello(hello);
}

Status Link::accept_hello(ByteView body) {
  TC_ASSIGN(peer_, wire::decode_hello(body));
  TC_ASSIGN(peer_triple_, TargetTriple::parse(peer_.triple));
  if (peer_.abi != TC_IFUNC_ABI)
    return fail(TC_ERR_VERSION, "{} has ifunc ABI {} when this build has {}", peer_label(), peer_.abi, TC_IFUNC_ABI);
  trusted_ = node_.trusts(connection_->origin());
  TC_CHECK(connection_->open(hello_of(node_)));
  state_ = State::ready;
  label_.reset();
  update_open();
  node_.log().debug("{}: link is ready, frames go by {}", peer_label(), connection_->transport());
  send_held();
  drain_backlog();
  node_.compile_requests().on_link_ready(*this);
  return {};
}

bool Link::on_bye(ByteView body) {
  const auto bye = wire::decode_bye(Bytes(body.begin(), body.end()));
  if (!bye) return on_broken(bye.error().message), false;
  const auto said = bye->status == TC_OK ? fmt::format("{} said goodbye", peer_label())
                                         : fmt::format("{} hung up: {}", peer_label(), bye->reason);
  end(Error{bye->status == TC_OK ? TC_ERR_DISCONNECTED : bye->status, said});
  return true;
}

// What was accepted is run, whatever became of its sender: by receive(), as events come from inside the transport.
void Link::end(const Error& reason) {
  if (state_ == State::lost || ending_) return;
  if (state_ == State::ready) {
    node_.come_back_to(*this);
    ending_ = reason;
    return;
  }
  connection_->drop();
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
  if (loss_is_told_) return;
  if (state_ != State::lost) {
    state_ = State::lost;
    update_open();
    node_.note_loss();
    reason_ = {reason.code, "no memory"};
    reason_.message = reason.message;
  }
  for (; !held_.empty(); held_.pop_front())
    if (const auto& held = held_.front(); held.ticket)
      node_.answer_for(held.ticket->token, held.route ? &held.route->route() : nullptr, reason_);
  for (; !backlog_.empty(); backlog_.pop_front())
    if (const ByteView frame(backlog_.front().whole); !frame.empty())
      answer_unrun(wire::decode(Reader(frame).u64()), frame.subspan(wire::header_bytes), reason_);
  for (; !parked_.empty(); parked_.pop_front()) answer_unrun(parked_.front().header, parked_.front().body, reason_);
  node_.on_link_lost(*this);
  loss_is_told_ = true;
}

// The last frame, where there is room for one.
void Link::write_bye(const Error& reason) {
  if (state_ != State::ready) return;
  const auto body = wire::encode_bye({reason.code, reason.message});
  std::byte* const at = out_->reserve(body.size());
  if (at == nullptr) return;
  std::memcpy(at + wire::header_bytes, body.data(), body.size());
  out_->commit(wire::encode(wire::Kind::bye, 0, 0, static_cast<uint32_t>(body.size())));
}

void Link::hang_up(const Error& reason) {
  if (state_ == State::lost) return;
  const Error told{reason.code, fmt::format("{}: {}", node_.label(), reason.message)};
  if (state_ == State::greeting && !initiator_) {
    connection_->refuse(told);
  } else {
    write_bye(told);
    connection_->close();
  }
  lose(reason);
}

void Link::say_goodbye() {
  if (state_ == State::lost) return;
  write_bye({TC_OK, "goodbye"});
  connection_->close();
  lose(Error{TC_ERR_CLOSED, "the endpoint was closed here"});
}

void Link::end_for_memory() noexcept {
  try {
    hang_up(Error{TC_ERR_NO_MEMORY, fmt::format("there is no memory for what {} sends", peer_label())});
  } catch (const std::bad_alloc&) {
  }
  try {
    connection_->close();
    lose(Error{TC_ERR_NO_MEMORY, "no memory"});
  } catch (const std::bad_alloc&) {  // the node tries again
  }
}

}  // namespace tc::node
