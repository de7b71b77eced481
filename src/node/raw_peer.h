// SPDX-License-Identifier: Apache-2.0
//
// For tests: a peer made by hand, that says to a node whatever the test wants, in whatever order.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "threechains/ifunc.h"
#include "transport/loopback.h"
#include "wire/bundle.h"
#include "wire/hello.h"

namespace tc::node::test {

inline Bytes copy_of(ByteView view) { return {view.begin(), view.end()}; }

class RawPeer final : public transport::Events {
 public:
  struct Frame {
    wire::Header header;
    Bytes body;
  };

  explicit RawPeer(transport::LoopbackNetwork& network) : transport_(network.join(*this)) {}

  void listen(std::string_view address) { (void)transport_->listen(address).value(); }
  void connect(std::string_view address) { connection_ = transport_->connect(address).value(); }
  void vanish() { connection_.reset(); }

  static wire::Hello hello() {
    wire::Hello hello;
    hello.protocol = wire::protocol_version;
    hello.abi = TC_IFUNC_ABI;
    hello.instance = 4711;
    hello.node_id = 7;
    hello.max_message = 1 << 20;
    hello.name = "raw";
    hello.triple = TargetTriple::host().text;
    hello.offer = copy_of(as_bytes("loopback"));
    return hello;
  }

  void control(wire::Kind kind, uint32_t number, ByteView body) { control(wire::make_frame(kind, 0, number, body)); }
  void control(const Bytes& frame) { (void)connection_->send_control(frame); }
  void greet() { control(wire::Kind::hello, 0, wire::encode_hello(hello())); }
  // Frames may be sent from now on, whatever the node says.
  void open() { (void)connection_->open_way(transport::Way::automatic, as_bytes("loopback")); }

  // False when there is no room.
  bool send(wire::Kind kind, uint8_t flags, uint32_t number, ByteView body) {
    auto& out = connection_->out();
    std::byte* const at = out.reserve(body.size());
    if (at == nullptr) return false;
    std::ranges::copy(body, at + wire::header_bytes);
    out.commit(wire::encode(kind, flags, number, static_cast<uint32_t>(body.size())));
    return true;
  }
  bool send(wire::Kind kind, uint32_t number, ByteView body) { return send(kind, 0, number, body); }

  // Takes everything that came.
  void progress() {
    transport_->progress();
    if (!connection_) return;
    auto& in = connection_->in();
    while (in.peek() != 0 || in.refill()) {
      const auto header = wire::decode(in.peek());
      if (!in.fits(header.length)) break;
      frames.push_back({header, copy_of({in.body(), header.length})});
      in.advance(header.length);
    }
    in.release();
  }

  const Frame* find(wire::Kind kind, std::optional<uint32_t> number = {}) const {
    const auto found = std::ranges::find_if(frames, [&](const auto& frame) {
      return frame.header.kind == kind && (!number || frame.header.number == *number);
    });
    return found != frames.end() ? &*found : nullptr;
  }
  std::optional<wire::Reply> reply_to(uint64_t token) const {
    for (const auto& frame : frames)
      if (frame.header.kind == wire::Kind::reply)
        if (auto reply = wire::decode_reply(frame.body); reply && reply->token == token) return *reply;
    return {};
  }

  std::vector<Frame> frames;
  std::optional<wire::Hello> peer;
  std::optional<wire::Bye> bye;
  std::optional<Error> lost;
  bool greets_back = true;

  // ---- transport::Events
  void on_accept(std::unique_ptr<transport::Connection> connection) override { connection_ = std::move(connection); }
  void on_control(transport::Connection&, ByteView frame) override {
    const auto header = wire::decode(Reader(frame).u64());
    const auto body = frame.subspan(wire::header_bytes);
    if (header.kind == wire::Kind::bye) bye = wire::decode_bye(body).value();
    if (header.kind == wire::Kind::credit && header.number == wire::credit_window)
      (void)connection_->out().credit(wire::decode_credit(body).value().consumed);
    if (header.kind != wire::Kind::hello || peer) return;
    peer = wire::decode_hello(body).value();
    open();
  }
  bool on_call(transport::Connection&, uint32_t, const wire::Header&, std::byte*) override { return false; }
  void on_lost(transport::Connection&, const Error& reason) override { lost = reason; }

 private:
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<transport::Connection> connection_;
};

// What a call carries in front of its payload.
inline Bytes ticket(uint64_t token, uint32_t deadline_ms = 0) {
  Bytes out(wire::ticket_bytes);
  wire::write_ticket(out.data(), {.token = token, .deadline_ms = deadline_ms, .hops_left = 4, .fanout_left = 4});
  return out;
}

inline Bytes operator+(Bytes front, ByteView back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

inline Bytes code_section(const Bundle& bundle) {
  const auto which = bundle.useful_for(TargetTriple::host());
  const auto bytes = bundle.bytes_for(which);
  Bytes out;
  wire::append_code(out, {bundle.id(), which, static_cast<uint32_t>(bytes.size())}, bytes);
  return out;
}

}  // namespace tc::node::test
