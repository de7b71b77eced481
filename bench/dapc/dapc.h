// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench dapc`: the distributed adaptive pointer chase (main paper, IV.C-D and V.C-D). docs/measuring.md says
// what is measured and how. Thread: the one that measures.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "common/machine.h"
#include "common/statistics.h"
#include "dapc/mode.h"

namespace tc::bench {

struct DapcOptions {
  std::string transport = "tcp";  // or "shm"
  std::vector<uint32_t> servers{1, 2, 4, 8, 16};
  std::vector<uint32_t> depths{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<uint32_t> inflight{1};
  int runs = 5;
  std::string chaser;                  // an .ifunc file that chases instead of chaser.c; empty: chaser.c
  std::vector<std::string> languages;  // whose chasers run beside C's: "julia", "rust"
  uint64_t shard_entries = 65'536;
  uint64_t seed = 42;
  uint32_t run_ms = 100;  // about so long does one mode chase in one run
  bool json = false;
  bool loopback = false;                    // no namespaces, even as root
  const std::atomic<bool>* stop = nullptr;  // set: end soon, with what there is
};

// One setting, all modes side by side.
struct DapcPoint {
  uint32_t servers = 0, depth = 0, inflight = 0;
  std::map<ChaseMode, Summary> rate;  // chases per second
  std::map<ChaseMode, Summary> ratio_to_am;
  std::map<ChaseMode, Summary> ratio_to_get;
  std::map<ChaseMode, Summary> ratio_to_c;         // of translations, to ifunc_bitcode
  std::map<ChaseMode, Summary> fraction_of_bound;  // ifunc modes, from two servers on
  std::map<ChaseMode, uint64_t> chases;            // in one run
  // What the servers ran for them in one run. Translations must run as often as C's; empty when there are none.
  std::map<ChaseMode, uint64_t> executed;
  std::map<ChaseMode, Summary> fraction_of_pair_bound;
  Summary one_way_us;       // of a hop round all servers; from two servers on
  Summary pair_one_way_us;  // of a hop between two servers while the others sleep
  Summary get_us;           // one step of `get`
  uint64_t answers = 0;     // compared with the expected ones
};

struct DapcResult {
  DapcOptions options;
  std::string ucx_version;
  Machine machine;
  bool namespaces = false;
  std::string why_no_namespaces;
  bool complete = false;  // false: stopped before the end
  std::vector<DapcPoint> points;
};

// Starts the servers, measures and gives the results; a wrong answer in any mode is an error. When `stop` ends it,
// the result holds the points that are done.
Result<DapcResult> run_dapc(const DapcOptions& options);

// A server's process, started by run_dapc().
struct DapcServerOptions {
  std::string transport;
  uint32_t index = 0, servers = 0;
  uint64_t shard_entries = 0, seed = 0;
  std::string host, rendezvous;  // of the server's two nodes; each meets the others in a folder of its own
};
int run_dapc_server(const DapcServerOptions& options);

std::string format_table(const DapcResult& result);
std::string format_json(const DapcResult& result);

}  // namespace tc::bench
