// SPDX-License-Identifier: Apache-2.0
//
// The conditions of a run: the machine, and the CPUs that the processes of the benchmark run on. Each benchmark's JSON
// carries them, so that a page made from it later (`ifunc bench report`) can say where and by which command it was
// measured. Threads: any; pin_to() pins the calling thread, and those that it starts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/report.h"

namespace tc::bench {

struct Machine {
  std::string command;       // as typed, the program as "ifunc", quoted for a shell
  std::string date;          // when the run began, UTC: 2026-01-31T12:00:00Z
  std::string cpu;           // model name
  int cores = 0;             // that this process may use
  bool virtualized = false;  // the CPU says that a hypervisor is below
  std::string kernel;
  uint64_t memory_bytes = 0;
  std::string ucx;       // version
  std::string governor;  // of CPU 0's frequency; empty when it cannot be read, as in most virtual machines
  std::array<double, 3> load_before{};  // load averages over 1, 5 and 15 minutes
  std::array<double, 3> load_after{};
};

// To be called when the run begins, before anything is pinned or started. What cannot be read stays empty.
Machine describe_machine(const std::string& ucx_version);

// The first keys of a benchmark's JSON object.
nlohmann::ordered_json json_head(const char* bench, const std::string& transport, const Machine& machine, int runs);

// To be called when the run has ended: sets "command" and "machine" of a benchmark's JSON object, and the load after.
void put_machine(nlohmann::ordered_json& root, Machine machine);

// One argument as a shell takes it: quoted where it has to be.
std::string shell_quoted(const std::string& argument);

// The number of the `index`-th CPU that this process may use; -1 when there are fewer.
int usable_cpu(int index);
// Keeps this process on it. False when there are fewer, or when the system refuses.
bool pin_to(int index);
// To the CPU of that number, also when the thread has been pinned to another one.
bool pin_to_cpu(int cpu);
// CPUs this process may use.
int usable_cpus();

// Where the two pinned processes of a benchmark run. A message between two CPUs that share a cache takes a fraction of
// one between CPUs that do not. What the system says of caches is a claim in a virtual machine, whose CPUs the host
// moves; so the round trip of two flags is measured as well.
struct Placement {
  int cpus[2] = {-1, -1};
  int shared_cache_level = 0;  // the lowest that both use, as the system says; 0: none, or unknown
  Summary flag_ns;             // half of a round trip of two flags (floor/raw_memory.h), of each run
  double least_flag_ns = 0;    // of all runs: what else runs on the machine makes the others slow

  void set_flags(const std::vector<double>& runs);
  // "near": the flags of three runs in four took less than far_ns; "far": those of no run did. "mixed": the host moved
  // the CPUs during the benchmark, or something else ran on them.
  const char* verdict() const noexcept;
  static constexpr double far_ns = 100;
};

// Of the first two CPUs that this process may use. To be called before it is pinned; set_flags() does the rest.
Placement describe_placement();
// "CPUs 0 and 1 share an L3 cache (as the system says) and are near: two flags take 55.1 ns ..."
std::string format_placement(const Placement& placement);
void put_placement(nlohmann::ordered_json& root, const Placement& placement);

}  // namespace tc::bench
