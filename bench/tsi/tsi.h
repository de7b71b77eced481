// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tsi`: target-side increment, the papers' micro-benchmark (main paper, IV.B, V.A and V.B).
// Thread: the one that measures.
#pragma once

#include <map>
#include <string>

#include "common/machine.h"
#include "common/placement.h"
#include "common/statistics.h"
#include "tsi/measure.h"

namespace tc::bench {

struct TsiOptions {
  std::string transport = "shm";  // common/transport.h
  int runs = 9;
  uint64_t latency_rounds = 0;  // 0: as many as take a few ten milliseconds on this transport
  uint64_t rate_calls = 0;
  int first_samples = 200;  // never-seen ifuncs sent for first_execution_us
  bool json = false;
};

// Never-seen code.
struct FirstExecution {
  Summary all_us;   // last byte received to end of first execution
  Summary load_us;  // of that: check and link, or compile
};

struct TsiResult {
  TsiOptions options;
  Machine machine;
  Placement placement;
  std::string ucx_version;
  std::map<Mode, Summary> latency_ns;
  std::map<Mode, Summary> rate;                 // calls per second
  std::map<Mode, Summary> latency_ratio_to_am;  // of the same run
  std::map<Mode, Summary> rate_ratio_to_am;
  std::map<Mode, Summary> latency_ratio_to_raw;
  std::map<Mode, Summary> rate_ratio_to_raw;
  std::map<Mode, Summary> latency_ratio_to_plain;  // of encrypted calls; else empty, as is the next one
  std::map<Mode, Summary> rate_ratio_to_plain;
  std::map<Mode, size_t> frame_bytes;
  std::map<Mode, Summary> first_execution_us;  // the two uncached modes
  std::map<Mode, Summary> load_us;             // check and link, or compile
  FirstExecution ten_symbols;                  // the object of ten_symbols.c
  double am_dispatch_ns = 0;                   // "lookup and execution"
  double cached_dispatch_ns = 0;

  // Whose latency is the floor: two flags in memory, or a socket.
  Mode latency_floor() const noexcept { return by_network ? Mode::raw : Mode::raw_flags; }
  bool by_network = false;
};

// Starts the other process, measures, and gives the results. Progress goes to stderr when that is a terminal.
Result<TsiResult> run_tsi(const TsiOptions& options);
// The other process.
int run_tsi_target(const std::string& transport);

// Tables in the papers' form, or one JSON object (docs/measuring.md).
std::string format_table(const TsiResult& result);
std::string format_json(const TsiResult& result);

}  // namespace tc::bench
