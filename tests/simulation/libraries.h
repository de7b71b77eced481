// SPDX-License-Identifier: Apache-2.0
//
// The books about a library that is sent to the nodes of a simulated cluster in two versions, and about what uses it there:
// each use has one version, whole, and none that a newer one had replaced before.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "node/future.h"

namespace tc::simulation {

class Libraries {
 public:
  struct Call {
    size_t event = 0;
    uint32_t from = 0, to = 0;
    int version = 0;     // that was sent; 0: this is a use
    uint32_t value = 0;  // to compute with
    uint64_t sent_ns = 0;
    std::shared_ptr<node::Future> future;
  };

  void record(Call call) { open_.push_back(std::move(call)); }
  // Looks at those that have ended.
  Status settle(uint64_t now_ns);
  // That node is gone: nobody there waits any more.
  void forget(uint32_t node, uint64_t now_ns);
  // How many calls of that node's have ended without an answer, which may yet come.
  uint64_t without_answer(uint32_t node) const;

 private:
  struct Sent {
    uint32_t to;
    int version;
    uint64_t began_ns;
    uint64_t ended_ns;  // UINT64_MAX: it may yet be taken
    bool is_taken;      // its sender knows
  };

  void end_send(const Call& call, uint64_t now_ns);
  Status check_use(const Call& call) const;
  bool may_have(uint32_t node, int version, uint64_t from_ns) const;

  std::vector<Call> open_;
  std::vector<Sent> sent_;
  std::map<uint32_t, uint64_t> without_answer_;  // by caller
};

}  // namespace tc::simulation
