// SPDX-License-Identifier: Apache-2.0
//
// For tests: a peer made by hand, which sends a node whatever frames the test wants, in whatever order.
//
// Thread: the test's.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "threechains/ifunc.h"
#include "transport/testing/simulated/simulated.h"
#include "wire/bundle.h"
#include "wire/frame.h"

namespace tc::node::test {

inline Bytes copy_of(ByteView view) { return {view.begin(), view.end()}; }

class RawPeer final : public transport::Events {
 public:
  struct Frame {
    wire::FrameHeader header;
    Bytes body;
  };

  explicit RawPeer(transport::SimulatedNetwork& network) : transport_(network.join(*this)) {}

  void listen(std::string_view address) { (void)transport_->listen(address).value(); }
  // Connects and greets.
  void connect(std::string_view address) { connect(address, wire::encode_hello(says)); }
  void connect(std::string_view address, ByteView greeting) {
    connection_ = transport_->connect(address, greeting).value();
  }
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
    return hello;
  }

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

  void progress() { transport_->progress(); }
  // Reads nothing from now on, or again.
  void set_reading(bool reads) { connection_->set_paused(!reads); }
  // Reads so many frames at most, and then nothing.
  void read(size_t most) {
    frames_left_ = most;
    on_frames(*connection_);  // those that came with the last ones
    set_reading(true);
    progress();
    set_reading(false);
    frames_left_ = SIZE_MAX;
  }
  // Sends without reading anything.
  void flush() { transport_->flush(); }

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

  wire::Hello says = hello();  // its greeting
  std::vector<Frame> frames;
  std::optional<wire::Hello> peer;
  std::optional<wire::Disconnect> bye;
  std::optional<Error> lost;
  bool answers = true;           // those who connect to it
  std::optional<Error> refusal;  // of those who connect to it
  unsigned refusals = 0;         // so many; then they may connect

  // ---- transport::Events
  Status may_connect(const transport::Origin&) override {
    return refusals == 0 ? Status{} : (--refusals, fail(*refusal));
  }
  void on_accept(std::unique_ptr<transport::Connection> connection, ByteView greeting) override {
    connection_ = std::move(connection);
    if (!answers) return;
    peer = wire::decode_hello(greeting).value();
    (void)connection_->open(wire::encode_hello(says));
  }
  void on_greeting(transport::Connection& connection, ByteView greeting) override {
    peer = wire::decode_hello(greeting).value();
    (void)connection.open({});
  }
  // Takes everything that came, unless it reads less.
  void on_frames(transport::Connection& connection) override {
    auto& in = connection.in();
    while (frames_left_ != 0 && in.refill()) {
      --frames_left_;
      const auto header = wire::decode(in.peek());
      frames.push_back({header, copy_of({in.body(), header.length})});
      if (header.kind == wire::Kind::disconnect) bye = wire::decode_disconnect(frames.back().body).value();
      in.advance(header.length);
    }
    in.release();
  }
  void on_lost(transport::Connection&, const Error& reason) override { lost = reason; }

 private:
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<transport::Connection> connection_;
  size_t frames_left_ = SIZE_MAX;
};

// What a call carries in front of its payload.
inline Bytes call_header(uint64_t token, uint32_t deadline_ms = 0) {
  Bytes out(wire::call_header_bytes);
  wire::write_call_header(out.data(), {.token = token, .deadline_ms = deadline_ms, .hops_left = 4, .fanout_left = 4});
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
