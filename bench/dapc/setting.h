// SPDX-License-Identifier: Apache-2.0
//
// A number of servers, and the client's side of every mode. All points of a sweep with that number are measured on it.
// Thread: the one that measures.
#pragma once

#include "dapc/am_chase.h"
#include "dapc/dapc.h"
#include "dapc/get_chase.h"
#include "dapc/ifunc_chase.h"
#include "dapc/point.h"

namespace tc::bench {

class Setting {
 public:
  using Translations = std::map<ChaseMode, Bytes>;
  // `translations`: bundles that chase beside C's.
  static Result<std::unique_ptr<Setting>> create(const DapcOptions& options, uint32_t servers, const Site& site,
                                                 const Translations& translations);

  // Finds out how many chases take about options.run_ms, for each mode. Unmeasured.
  Status calibrate(DapcPoint& point);
  // One round of every mode.
  Result<DapcRun> run(DapcPoint& point);

 private:
  Setting(const DapcOptions& options, uint32_t servers) : options_(options), servers_count_(servers) {}
  Status connect();
  Status warm_up();
  Status switch_to(ChaseMode mode);
  Status tell(std::string_view order);
  // How many ifuncs the servers have run for bitcode; 0 when there is nothing to compare.
  Result<uint64_t> executed(ChaseMode mode);
  // The same chases must take the same ifuncs in every language, and in every run.
  Status compare_executed(ChaseMode mode, DapcPoint& point, uint64_t count);
  // Seconds for `count` chases, all answers compared.
  Result<double> chase(ChaseMode mode, const DapcPoint& point, uint64_t count);
  Status prepare_chases(uint32_t depth, uint64_t count);
  Status watch();
  ChaseClient& client(ChaseMode mode);
  uint64_t entries() const noexcept { return servers_count_ * options_.shard_entries; }

  const DapcOptions& options_;
  const uint32_t servers_count_;
  std::vector<ChaseMode> modes_;  // in the order in which they run
  std::vector<uint64_t> table_;
  uint32_t expected_depth_ = 0;  // of expected_
  std::vector<uint64_t> starts_, expected_, ends_;
  uint64_t answers_ = 0;
  uint64_t next_look_ns_ = 0;
  uint64_t give_up_ns_ = 0;  // for the chases that run
  std::string mode_ = "none";
  std::unique_ptr<Servers> servers_;
  std::unique_ptr<AmChaseClient> am_;
  std::unique_ptr<GetChaseClient> get_;
  std::unique_ptr<IfuncChaseClient> bitcode_, object_;
};

}  // namespace tc::bench
