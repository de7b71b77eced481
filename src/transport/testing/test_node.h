// SPDX-License-Identifier: Apache-2.0
//
// For tests: a node on any of the transports. It greets, and stores the events that it gets.
//
// Thread: the one that drives the node.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "transport/network/network.h"
#include "transport/testing/frames.h"
#include "transport/testing/simulated/simulated.h"

namespace tc::transport {

// A transport, as it is named in a test.
struct Kind {
  const char* name;
  Choice choice;
  const char* ucx_tls;
  std::string_view transport;  // as connections call it
  bool is_encrypted = false;
  bool is_simulated() const noexcept { return *name == 's' && name[1] == 'i'; }
  bool is_ucx() const noexcept { return ucx_tls != nullptr; }
  bool is_local() const noexcept { return choice == Choice::shm || choice == Choice::unix_socket; }
};
// In the names of tests.
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
inline constexpr Kind kinds[] = {
    {"simulated", Choice::automatic, nullptr, "simulated"},
    {"ring", Choice::shm, nullptr, "shm"},
    {"socket", Choice::tcp, nullptr, "tcp"},
    {"unix_socket", Choice::unix_socket, nullptr, "unix"},
    {"encrypted_socket", Choice::tcp, nullptr, "tls", true},
    {"ucx_over_memory", Choice::ucx, "posix,self", "ucx"},
    {"ucx_over_tcp", Choice::ucx, "tcp,self", "ucx"},
    {"ucx_puts_over_memory", Choice::ucx_put, "posix,self", "ucx-put"},
    {"ucx_puts_over_tcp", Choice::ucx_put, "tcp,self", "ucx-put"},
    {"ucx_with_encrypted_greetings", Choice::ucx, "posix,self", "ucx", true},
};
// Those whose greeting a test can write by hand: with a socket, and plain.
inline std::vector<Kind> plain_kinds() {
  std::vector<Kind> plain;
  for (const auto& kind : kinds)
    if (!kind.is_simulated() && !kind.is_encrypted) plain.push_back(kind);
  return plain;
}
inline constexpr const Kind& ring_kind = kinds[1];
inline constexpr const Kind& socket_kind = kinds[2];
inline constexpr const Kind& encrypted_kind = kinds[4];

inline NetworkOptions options_of(const Kind& kind) {
  NetworkOptions options;
  options.choice = kind.choice;
  options.tls_plugin = TC_TLS_PLUGIN;
  if (!kind.is_encrypted)
    for (const char* network : {"127.0.0.0/8", "::1"})
      options.trusted_networks.push_back(AddressRange::parse(network).value());
  if (kind.is_ucx()) {
    options.fabric.tls = kind.ucx_tls;
    options.fabric.devices = "lo";
    options.fabric_plugin = TC_UCX_PLUGIN;
  }
  return options;
}

class TestNode final : public Events {
 public:
  // `network` is needed by a simulated one only.
  explicit TestNode(const Kind& kind, SimulatedNetwork* network = nullptr) : TestNode(options_of(kind)) {
    if (network != nullptr && kind.is_simulated()) transport = network->join(*this);
  }
  explicit TestNode(const NetworkOptions& options) {
    auto made = Network::create(options, *this);
    if (!made) throw std::runtime_error(made.error().message);
    transport = std::move(*made);
  }

  ~TestNode() {
    peer.reset();
    earlier.clear();
    if (transport != nullptr) transport->finish();
  }
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  std::string listen(std::string_view address = "127.0.0.1:0") { return transport->listen(address).value(); }
  Connection& connect(const std::string& address, std::string_view hello = "hello") {
    peer = transport->connect(address, as_bytes(hello)).value();
    return *peer;
  }
  // Progresses until `done` or the deadline; false when that came first.
  bool until(const std::function<bool()>& done, uint64_t ms = 60'000) {
    for (const auto deadline = Deadline::after_ms(ms); !done();) {
      poll();
      if (deadline.passed()) return false;
    }
    return true;
  }
  void poll() {
    ++transport->poll_state.poll_number;
    transport->progress();
  }
  void sleep(uint64_t ms) { transport->sleep(Deadline::after_ms(ms)); }
  OutStream& out() { return peer->out(); }
  InStream& in() { return peer->in(); }
  bool is_open() const { return opened != 0 && peer != nullptr && !lost; }
  // For the next peer.
  void drop_peer() {
    peer.reset();
    lost.reset();
    opened = 0;
  }

  // ---- Events
  Status may_connect(const Origin& origin) override {
    return admits(origin) ? Status{} : fail(TC_ERR_DENIED, "this origin is refused");
  }
  Status is_expected(std::string_view where, const Origin& origin) override {
    ++answered;
    return expects(origin) ? Status{} : fail(TC_ERR_DENIED, "another one answers at {}", where);
  }
  void on_accept(std::unique_ptr<Connection> connection, ByteView hello) override {
    ++accepted;
    peer_hello = std::string(as_text(hello));
    if (peer != nullptr) earlier.push_back(std::move(peer));
    peer = std::move(connection);
    if (opens && !peer->open(as_bytes(std::string_view("hello back")))) ++failed_opens;
    opened += opens ? 1 : 0;
  }
  void on_greeting(Connection& connection, ByteView hello) override {
    peer_hello = std::string(as_text(hello));
    if (auto fine = connection.open({}); !fine)
      lost = fine.error();
    else
      ++opened;
  }
  void on_frames(Connection& connection) override {
    ++notified;
    if (when_notified) when_notified(connection);
  }
  void on_lost(Connection&, const Error& reason) override {
    lost = reason;
    ++losses;
  }
  void on_refused(const std::string&, const Error& why) override { refused.push_back(why); }
  void on_warning(const std::string& what) override { warnings.push_back(what); }

  std::unique_ptr<Transport> transport;
  std::unique_ptr<Connection> peer;                  // the latest
  std::vector<std::unique_ptr<Connection>> earlier;  // that were accepted
  std::function<bool(const Origin&)> admits = [](const Origin&) { return true; };
  std::function<bool(const Origin&)> expects = [](const Origin&) { return true; };
  bool opens = true;  // connections of peers
  std::function<void(Connection&)> when_notified;
  std::string peer_hello;
  std::optional<Error> lost;
  std::vector<Error> refused;
  std::vector<std::string> warnings;
  unsigned answered = 0, accepted = 0, opened = 0, failed_opens = 0, losses = 0, notified = 0;
};

}  // namespace tc::transport
