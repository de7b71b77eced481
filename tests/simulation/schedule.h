// SPDX-License-Identifier: Apache-2.0
//
// Which node has something to do, and when: so that nobody else has to be asked.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace tc::simulation {

class Schedule {
 public:
  struct Due {
    uint64_t at_ns = UINT64_MAX;
    uint32_t node = 0;
  };

  explicit Schedule(uint32_t nodes) : deadlines_(nodes, UINT64_MAX) {}

  // Something comes to the node then.
  void add(uint32_t node, uint64_t at_ns) { due_.emplace(at_ns, node, false); }
  // The node itself wants to go on then, and at no other time; UINT64_MAX: at none.
  void set_deadline(uint32_t node, uint64_t at_ns) {
    if (deadlines_[node] == at_ns) return;
    if (deadlines_[node] != UINT64_MAX) due_.erase({deadlines_[node], node, true});
    if (at_ns != UINT64_MAX) due_.emplace(at_ns, node, true);
    deadlines_[node] = at_ns;
  }
  // The first of all; at UINT64_MAX: nothing is due.
  Due next() const {
    if (due_.empty()) return {};
    const auto& [at_ns, node, is_deadline] = *due_.begin();
    return {at_ns, node};
  }
  // Takes it away.
  Due take() {
    const auto due = next();
    if (due_.empty()) return due;
    if (std::get<2>(*due_.begin())) deadlines_[due.node] = UINT64_MAX;
    due_.erase(due_.begin());
    return due;
  }

 private:
  std::set<std::tuple<uint64_t, uint32_t, bool>> due_;  // when, which node, whether that is its deadline
  std::vector<uint64_t> deadlines_;
};

}  // namespace tc::simulation
