// SPDX-License-Identifier: Apache-2.0
//
// The conditions of a run: what its figures depend on besides the program. Each benchmark's JSON carries them, so
// that a page made from it later (`ifunc bench report`) can say where and by which command it was measured.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>

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

// To be called when the run has ended: sets "command" and "machine" of a benchmark's JSON object, and the load after.
void put_machine(nlohmann::ordered_json& root, Machine machine);

// One argument as a shell takes it: quoted where it has to be.
std::string shell_quoted(const std::string& argument);

}  // namespace tc::bench
