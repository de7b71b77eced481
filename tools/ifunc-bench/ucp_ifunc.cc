// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench ucp-ifunc`.
#include <memory>

#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"
#include "ucp_ifunc/ucp_ifunc_bench.h"

namespace tc::command {

void add_ucp_ifunc(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand(
      "ucp-ifunc", "The papers' own API beside UCX Active Messages, over payload sizes (2021 paper, Figures 3 and 4)");
  const auto options = std::make_shared<bench::UcpIfuncOptions>();
  command->add_option("--transport", options->transport, "shm or tcp")->check(CLI::IsMember({"shm", "tcp"}));
  command->add_option("--memory", options->memory, "Slots in memory that UCX allocated, or in the program's own")
      ->check(CLI::IsMember({"allocated", "own"}));
  command->add_flag("--read", options->read, "The target reads the payload, as well as counting");
  command->add_option("--largest", options->largest, "The largest payload, in bytes")
      ->check(CLI::Range(size_t{1}, size_t{16} << 20));
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_ucp_ifunc(*options), options->json); });
}

}  // namespace tc::command
