// SPDX-License-Identifier: Apache-2.0
//
// One node's side of the simulated network (simulated.h): its transport and its connections.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_stream.h"
#include "transport/stream.h"
#include "transport/testing/simulated/pipe.h"
#include "transport/transport.h"

namespace tc::transport {

class SimulatedTransport;

// A connection on the simulated network: two pipes, with the same streams on them as on a socket.
//
// Thread: the node's. The pipes are guarded by the network's mutex.
class SimulatedConnection final : public Connection, private Channel, private ByteOut::Owner {
 public:
  SimulatedConnection(SimulatedTransport& transport, SimulatedState& state, FlushList& list,
                      SimulatedState::Arrival arrival, Origin origin, bool accepted);
  ~SimulatedConnection() override;

  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return false; }
  Status open(ByteView hello) override;
  void refuse(const Error& why) noexcept override { end(why.code, why.message); }
  void drop() noexcept override { close(); }
  void close() noexcept override { end(TC_ERR_DISCONNECTED, "it closed the connection"); }
  std::string_view transport() const noexcept override { return "simulated"; }
  const std::string& peer_address() const noexcept override { return peer_; }
  const Origin& origin() const noexcept override { return origin_; }
  Traffic traffic() const noexcept override { return {in_.received(), out_.sent(), out_.waiting()}; }
  void set_paused(bool paused) noexcept override { paused_ = paused; }

  // For the transport. Delivers what has arrived; returns how much.
  unsigned deliver(Events& events);
  // Would deliver() have something to do? With the mutex held.
  bool has_events() noexcept;
  // The transport ends before the connection does.
  void detach() noexcept;

 private:
  void end(tc_status_t code, std::string_view why) noexcept;
  bool has_ended() const noexcept { return lost_ || closed_; }
  bool deliver_greeting(Events& events);
  bool deliver_bytes(Events& events);
  std::optional<Error> why_ended();
  bool ends() const;  // with the mutex held

  Result<size_t> send(ByteView bytes) override;
  Result<size_t> receive(std::span<std::byte> into) override;
  void on_channel_full() noexcept override { full_ = true; }
  void on_channel_lost(Error) noexcept override {}

  SimulatedTransport* transport_;  // null once the transport has ended
  SimulatedState& state_;
  std::shared_ptr<Pipe> in_pipe_, out_pipe_;
  std::string peer_;
  Origin origin_;
  const bool accepted_;
  ByteIn in_;
  ByteOut out_;
  std::optional<Error> receive_error_;  // found in what has arrived
  size_t offset_ = 0;                   // in the first message, when a part of it was received
  bool open_ = false;
  bool full_ = false;
  bool paused_ = false;
  bool lost_ = false;
  bool closed_ = false;
};

// One node's transport on the simulated network (simulated.h).
//
// Thread: the node's, for all calls but wake().
class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedState& state, Events& events) : state_(state), events_(events) {}
  ~SimulatedTransport() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) override;
  unsigned progress() noexcept override;
  void flush() noexcept override { flush_list_.flush_all(); }
  void sleep(Deadline deadline) noexcept override;
  bool arm(Deadline& deadline) noexcept override;
  void wake() noexcept override;

  // For connections, when they are destroyed.
  void remove(SimulatedConnection& connection) noexcept;

 private:
  std::unique_ptr<SimulatedConnection> adopt(SimulatedState::Arrival& arrival, bool accepted);
  Status ask_whether_expected(std::string_view address);
  unsigned accept_arrivals();
  void accept(std::unique_ptr<SimulatedConnection> connection, ByteView hello);
  bool has_events();

  SimulatedState& state_;
  Events& events_;
  std::shared_ptr<Sleeper> sleeper_ = std::make_shared<Sleeper>();
  FlushList flush_list_{poll_state};
  std::vector<std::string> addresses_;
  std::vector<SimulatedConnection*> connections_;  // null: destroyed, removed by the next progress()
};

}  // namespace tc::transport
