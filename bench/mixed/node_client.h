// SPDX-License-Identifier: Apache-2.0
//
// A client by ifuncs, through the public API, and the node that it calls. Thread: one in each process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/node.h"
#include "ifunc/attempt.h"
#include "mixed/burn_work.h"
#include "mixed/client.h"

namespace tc::bench {

// The node of either process: `counter` is what small calls increment at the target.
Result<threechains::Node> make_mixed_node(const BenchTransport& transport, uint32_t threads, uint64_t& counter);

// Two ifuncs that compute, of the same source. Nodes learn of each code how long its calls take, so that one of them is
// called for long work only, and the other one for brief work.
ByteView burn_ifunc();
ByteView burn_briefly_ifunc();

class NodeClient final : public MixedClient {
 public:
  // A long call is of this code, with that work.
  static Result<std::unique_ptr<NodeClient>> create(const BenchTransport& transport, ByteView code,
                                                    const BurnWork& work);
  ~NodeClient() override;
  Status connect(const std::string& address);
  void poll() override;
  void wait(uint32_t ms) override;

 private:
  struct Call {
    threechains::Future future;
    bool is_long;
  };
  NodeClient(const BenchTransport& transport, ByteView code, const BurnWork& work)
      : encrypted_(transport.encrypted()), code_(code), work_(work) {}
  void send_long() override { send(*long_, true); }
  void send_small() override { send(*small_, false); }
  void send(const threechains::Message& message, bool is_long);
  void take_ready();
  Status take(const Call& call) const;

  const bool encrypted_;
  const ByteView code_;
  const BurnWork work_;
  uint64_t counter_ = 0;
  std::optional<threechains::Node> node_;
  std::optional<threechains::Endpoint> endpoint_;
  std::optional<threechains::Message> long_, small_;
  std::vector<Call> calls_;
};

}  // namespace tc::bench
