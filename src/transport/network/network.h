// SPDX-License-Identifier: Apache-2.0
//
// The transport that nodes use. An address is HOST:PORT or unix:PATH. How frames travel is chosen for each connection:
//
//   shm   rings in shared memory, when the peer is a process of our user on this host
//   unix  a Unix socket, when one of the two cannot use rings
//   tls   an encrypted TCP socket, otherwise
//   tcp   a plain TCP socket, when the operator trusts the peer's network
//   ucx   UCX, when the operator chose it (fabric.h)
//
// Thread: the node's, for all calls but wake().
#pragma once

#include <memory>

#include "base/address_range.h"
#include "transport/closing_sockets.h"
#include "transport/fabric.h"
#include "transport/network/admission.h"
#include "transport/network/named_connection.h"
#include "transport/socket/tcp_connection.h"
#include "trust/key_pair.h"

namespace tc::transport {

enum class Choice : uint8_t { automatic, shm, unix_socket, tcp, ucx, ucx_put };
std::string_view choice_name(Choice choice) noexcept;
Result<Choice> parse_choice(std::string_view name);  // "auto", "shm", "unix", "tcp", "ucx", "ucx-put"

struct NetworkOptions {
  Choice choice = Choice::automatic;  // of connections that we start
  size_t ring_bytes = 256 * 1024;     // of a shared ring: per peer and direction, a power of two
  FabricOptions fabric;               // when the choice is UCX
  std::string fabric_plugin;          // path of libthreechains_ucx.so; empty: in the folder of this library
  // Who this node is on encrypted connections. Null: a key of its own is made when the first one needs it.
  std::shared_ptr<const trust::KeyPair> key;
  std::vector<AddressRange> trusted_networks;  // plain TCP to and from these, and encrypted TCP with all others
  std::string tls_plugin;                      // path of libthreechains_tls.so; empty: in the folder of this library
  NameLookups::Resolve resolve_name;           // finds the addresses of hosts that we connect to; empty: getaddrinfo()
};

class RingConnection;

class Network final : public Transport, private Hub {
 public:
  // `events` must outlive the network. TC_ERR_INVALID, TC_ERR_IO, TC_ERR_UNSUPPORTED (UCX is not available).
  static Result<std::unique_ptr<Transport>> create(const NetworkOptions& options, Events& events);
  ~Network() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) override;
  bool is_by_name(std::string_view address) const override;
  unsigned progress() noexcept override;
  void flush() noexcept override { flush_list.flush_all(); }
  void finish() noexcept override;
  uint64_t trim(uint64_t now_ns) noexcept override;
  void sleep(Deadline deadline) noexcept override;
  void wake() noexcept override { poller.wake(); }
  bool arm(Deadline& deadline) noexcept override;
  int descriptor() const noexcept override { return poller.descriptor(); }

 private:
  Network(const NetworkOptions& options, Events& events);
  Status start();
  Status open_fabric();
  Result<std::unique_ptr<trust::TlsSession>> open_session(trust::TlsRole role);

  // Listening.
  Result<std::string> listen_on_path(std::string_view path);
  Result<std::string> listen_on(Fd socket);
  void open_local_listener(const std::string& listening);

  // Connecting, and accepting peers that have greeted.
  Result<std::unique_ptr<SocketConnection>> connect_to_one_of(const std::vector<SocketAddress>& found,
                                                              std::string_view address, ByteView hello);
  bool may_start_rings() const noexcept;
  Result<std::unique_ptr<SocketConnection>> connect_locally(Fd socket, bool by_ring, std::string_view address,
                                                            ByteView hello);
  void on_greeted(GreetedPeer peer);
  Result<std::unique_ptr<SocketConnection>> accept(GreetedPeer& peer);

  // Polling and sleeping.
  unsigned receive() noexcept;
  unsigned poll_descriptors() noexcept;
  bool has_transitions() const noexcept;
  void choose_polling() noexcept;
  void check_deadlines(uint64_t now) noexcept;
  unsigned deliver_changes() noexcept;
  void run_due_work(Deadline& deadline) noexcept;
  bool prepare_sleep(Deadline& deadline) noexcept;
  void end_sleep() noexcept;
  bool has_frames() const noexcept;

  const NetworkOptions options_;
  bool can_use_rings_ = false;
  bool in_transition_ = false;   // a connection is greeting or closing, so descriptors are polled often
  bool polls_directly_ = false;  // all open TCP connections are in polled_sockets_
  bool is_armed_ = false;        // the flags in rings say that this node sleeps (arm())
  uint32_t calls_ = 0;
  uint64_t last_descriptor_poll_ns_ = 0;
  std::vector<TcpConnection*> polled_sockets_;
  std::vector<RingConnection*> polled_rings_;  // open: the peers write into our memory
  size_t sockets_ = 0;                         // open TCP connections
  std::vector<std::string> paths_;             // of Unix sockets, to be removed in the end
  std::unique_ptr<trust::TlsContext> tls_;     // null until the first encrypted connection
  Admission admission_{*this, [this](GreetedPeer peer) { on_greeted(std::move(peer)); }};
  NameLookups name_lookups_{poller, options_.resolve_name};
  NamedConnection::List named_;
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace tc::transport
