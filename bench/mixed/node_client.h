// SPDX-License-Identifier: Apache-2.0
//
// A client by ifuncs, through the public API, and the node that it calls. Thread: one in each process.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "capi/attempt.h"
#include "common/node.h"
#include "mixed/client.h"
#include "mixed/long_work.h"

namespace tc::bench {

// The node of either process: `counter` is what small calls increment at the target.
Result<threechains::Node> make_mixed_node(const BenchTransport& transport, uint64_t& counter);

class NodeClient final : public MixedClient {
 public:
  static Result<std::unique_ptr<NodeClient>> create(const BenchTransport& transport, const LongWork& work);
  ~NodeClient() override;
  Status connect(const std::string& address);
  void poll() override;

 private:
  struct Call {
    threechains::Future future;
    bool is_long;
  };
  NodeClient(const BenchTransport& transport, const LongWork& work) : encrypted_(transport.encrypted()), work_(work) {}
  void send_long() override { send(*long_, true); }
  void send_small() override { send(*small_, false); }
  void send(const threechains::Message& message, bool is_long);
  Status take(const Call& call) const;

  const bool encrypted_;
  const LongWork work_;
  uint64_t counter_ = 0;
  std::optional<threechains::Node> node_;
  std::optional<threechains::Endpoint> endpoint_;
  std::optional<threechains::Message> long_, small_;
  std::deque<Call> calls_;  // answered in this order
};

}  // namespace tc::bench
