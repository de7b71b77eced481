// SPDX-License-Identifier: Apache-2.0
//
// One node's transport on the simulated network (simulated.h).
//
// Thread: the node's, for all calls but wake().
#pragma once

#include "transport/flush_list.h"
#include "transport/simulated/connection.h"

namespace tc::transport {

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedState& state, Events& events) : state_(state), events_(events) {}
  ~SimulatedTransport() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) override;
  unsigned progress() noexcept override;
  void flush() noexcept override { flush_list_.flush_all(); }
  void sleep(Deadline deadline) noexcept override;
  void wake() noexcept override;

  // For connections, when they are destroyed.
  void remove(SimulatedConnection& connection) noexcept;

 private:
  std::unique_ptr<SimulatedConnection> adopt(SimulatedState::Arrival& arrival, bool accepted);
  Status ask_whether_expected(std::string_view address);
  unsigned accept_arrivals();
  bool has_events();

  SimulatedState& state_;
  Events& events_;
  std::shared_ptr<Sleeper> sleeper_ = std::make_shared<Sleeper>();
  FlushList flush_list_{poll_state};
  std::vector<std::string> addresses_;
  std::vector<SimulatedConnection*> connections_;  // null: destroyed, removed by the next progress()
};

}  // namespace tc::transport
