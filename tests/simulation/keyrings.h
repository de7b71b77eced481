// SPDX-License-Identifier: Apache-2.0
//
// The keyrings of a simulated cluster. In some seeds all nodes are of one user. In the others some are not: these prove keys,
// and what they may do is what the keyring of each node says at the moment.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "simulation/environment.h"
#include "simulation/plan.h"
#include "transport/testing/simulated/simulated.h"

namespace tc::simulation {

class Keyrings {
 public:
  // The addresses of the nodes, and behind them that of the stranger, whose code may run nowhere.
  Keyrings(Dice& dice, transport::SimulatedNetwork& network, std::vector<std::string> addresses);

  // The file of node `number`.
  std::string file(uint32_t number) const;
  bool has_key(uint32_t number) const { return has_key_[number]; }
  bool any_has_key() const;
  // The keyring of `at` says from now on of `whose` key: written into its file. One that has no key keeps its rights.
  Status set(uint32_t at, uint32_t whose, Leave leave);
  // May code of that node run at node `at`?
  bool may_run(uint32_t at, uint32_t whose) const;

 private:
  Status write(uint32_t at) const;
  Leave& leave(uint32_t at, uint32_t whose) { return leaves_[at * addresses_.size() + whose]; }
  Leave leave(uint32_t at, uint32_t whose) const { return leaves_[at * addresses_.size() + whose]; }

  std::vector<std::string> addresses_;
  std::vector<bool> has_key_;
  std::vector<Leave> leaves_;
  TemporaryDirectory folder_;
};

}  // namespace tc::simulation
