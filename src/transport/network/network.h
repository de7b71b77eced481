// SPDX-License-Identifier: Apache-2.0
//
// The transport that nodes use. An address is always HOST:PORT (or unix:PATH); how frames travel is chosen for each
// connection:
//
//   shm   a ring in shared memory, when the peer is a process of our user on this host
//   tcp   a socket of ours, otherwise
//   ucx   UCX, where the operator asked for it (fabric.h)
//
// Thread: the node's, but for wake().
#pragma once

#include <memory>

#include "transport/fabric.h"
#include "transport/network/farewells.h"
#include "transport/network/reception.h"
#include "transport/socket/tcp_connection.h"

namespace tc::transport {

enum class Choice : uint8_t { automatic, shm, tcp, ucx, ucx_put };
std::string_view choice_name(Choice choice) noexcept;
Result<Choice> parse_choice(std::string_view name);  // "auto", "shm", "tcp", "ucx", "ucx-put"

struct NetworkOptions {
  Choice choice = Choice::automatic;  // of connections that we start
  size_t ring_bytes = 256 * 1024;     // of a shared ring: per peer and direction, a power of two
  FabricOptions fabric;               // when the choice is UCX
  std::string fabric_plugin;          // path of libthreechains_ucx.so; empty: beside this library
};

class RingConnection;

class Network final : public Transport, private Hub, private Reception::Host {
 public:
  // `events` must outlive the network. TC_ERR_INVALID, TC_ERR_IO, TC_ERR_UNSUPPORTED (UCX cannot be had).
  static Result<std::unique_ptr<Transport>> create(const NetworkOptions& options, Events& events);
  ~Network() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) override;
  unsigned progress() noexcept override;
  void flush() noexcept override { flush_list.flush_all(); }
  void sleep(Deadline deadline) noexcept override;
  void wake() noexcept override { poller.wake(); }

 private:
  Network(const NetworkOptions& options, Events& events);
  Status start();
  Status open_fabric();

  // listen.cc
  Result<std::string> listen_on_path(std::string_view path);
  void open_second_door(const std::string& listening);

  // connect.cc
  Result<std::unique_ptr<Connection>> connect_by_ring(Fd door, std::string_view address, ByteView hello);
  void on_guest(Guest guest) override;
  Result<std::unique_ptr<SocketConnection>> admit(Guest& guest);
  Status may_connect(const Origin& origin) override { return events.may_connect(origin); }
  void on_refused(const std::string& who, const Error& why) override { events.on_refused(who, why); }

  // network.cc
  void part_with(Fd socket, Bytes unsent) noexcept override;
  unsigned take_in() noexcept;
  unsigned poll_descriptors() noexcept;
  bool somebody_meets() const noexcept;
  void review() noexcept;
  void see_to_time(uint64_t now) noexcept;
  unsigned deliver_losses() noexcept;
  bool falls_asleep(Deadline& deadline) noexcept;
  bool has_frames() const noexcept;

  const NetworkOptions options_;
  bool can_use_rings_ = false;
  bool is_meeting_ = false;      // somebody greets, or says goodbye: descriptors want to be looked at often
  bool polls_directly_ = false;  // all that can come by sockets comes by direct_
  uint32_t calls_ = 0;
  uint64_t last_look_ns_ = 0;  // at descriptors
  std::vector<TcpConnection*> direct_;
  std::vector<RingConnection*> polled_;  // whose peers write into our memory
  size_t sockets_ = 0;                   // open TCP connections
  std::vector<std::string> paths_;       // of sockets that are ours to remove
  Farewells farewells_{poller};
  Reception reception_{poller, farewells_, *this};
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace tc::transport
