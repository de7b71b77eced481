// SPDX-License-Identifier: Apache-2.0
//
// For this folder's tests: a node with one peer and the least of a link protocol, so that a transport can be
// tried as it will be used. HELLO carries the offer, CREDIT how much was read.
#pragma once

#include <atomic>
#include <functional>

#include "transport/transport_test_kit.h"

namespace tc::transport {

class TestNode final : public Events {
 public:
  explicit TestNode(Way wish, UcxOptions options = {}) : wish_(wish) {
    options.allow_put = wish == Way::put;
    auto made = make_ucx_transport(options, *this);
    if (!made) throw std::runtime_error(made.error().message);
    transport = std::move(*made);
  }

  std::string listen() { return transport->listen("127.0.0.1:0").value(); }
  void connect(const std::string& address) {
    auto made = transport->connect(address);
    if (!made) throw std::runtime_error(made.error().message);
    own(std::move(*made));
    greet();
  }
  bool open() const { return peer != nullptr && opened; }
  // Progresses until `done` or the deadline; false when that came first.
  bool until(const std::function<bool()>& done, uint64_t ms = 10000) {
    for (const auto deadline = Deadline::after_ms(ms); !done();) {
      turn();
      if (deadline.passed()) return false;
    }
    return true;
  }
  void turn() {
    transport->progress();
    give_credit();
  }
  void sleep(uint64_t ms) { transport->sleep(Deadline::after_ms(ms)); }
  // Tells the peer how far we read; on every way, whether it needs that or not.
  void give_credit() {
    if (!open() || lost || peer->in().consumed() - credited < 64 * 1024) return;
    peer->in().release();
    credited = peer->in().consumed();
    send_credit();
  }
  void send_credit() {
    Bytes body = wire::encode_credit({credited, 0});
    (void)peer->send_control(wire::make_frame(wire::Kind::credit, 0, 0, body));
  }

  void own(std::unique_ptr<Connection> connection) {
    peer = std::move(connection);
    peer->own(this);
  }
  void on_accept(std::unique_ptr<Connection> connection) override {
    own(std::move(connection));
    greet();
  }
  void on_control(Connection& connection, ByteView frame) override {
    Reader r(frame);
    const wire::Header header = wire::decode(r.u64());
    if (header.kind == wire::Kind::hello) {
      if (auto way = connection.open_way(wish_, r.bytes(header.length)); !way)
        refused = way.error();
      else
        opened = true;
    } else if (header.kind == wire::Kind::credit) {
      ++credits;
      credit_is_plausible &= connection.out().credit(wire::decode_credit(r.bytes(header.length)).value().consumed);
    } else {
      controls.emplace_back(frame.begin(), frame.end());
    }
  }
  bool on_call(Connection&, uint32_t, const wire::Header& header, std::byte* body) override {
    if (!takes_calls) return false;
    calls.emplace_back(body, body + header.length);
    aligned &= reinterpret_cast<uintptr_t>(body) % 16 == 0;
    taken = calls.size();
    if (on_taken) on_taken();
    return true;
  }
  bool goes_on() noexcept override { return calls.size() < goes_on_until; }
  void on_lost(Connection&, const Error& reason) override {
    lost = reason;
    ++losses;
  }

  std::unique_ptr<Transport> transport;
  std::unique_ptr<Connection> peer;
  std::vector<Bytes> controls;
  bool takes_calls = false, aligned = true;
  std::vector<Bytes> calls;  // that on_call() took
  size_t goes_on_until = 0;  // of these
  std::atomic<size_t> taken = 0;
  std::function<void()> on_taken;
  std::optional<Error> lost, refused;
  unsigned losses = 0;
  bool opened = false, credit_is_plausible = true;
  uint64_t credited = 0, credits = 0;

 private:
  void greet() {
    const auto offer = peer->offer(wish_);
    if (!offer) throw std::runtime_error(offer.error().message);
    if (auto sent = peer->send_control(wire::make_frame(wire::Kind::hello, 0, 0, *offer)); !sent)
      throw std::runtime_error(sent.error().message);
  }
  const Way wish_;
};

}  // namespace tc::transport
