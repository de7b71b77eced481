// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench ucp-ifunc`.
#include <cstdio>
#include <memory>

#include "ifunc/commands.h"
#include "ucp_ifunc/ucp_ifunc_bench.h"

namespace tc::command {

namespace {

int bench_ucp_ifunc(const bench::UcpIfuncOptions& options) {
  const auto result = bench::run_ucp_ifunc(options);
  if (!result) {
    std::fprintf(stderr, "ifunc bench ucp-ifunc: %s\n", result.error().message.c_str());
    return 1;
  }
  std::fputs(bench::format_ucp_ifunc(*result).c_str(), stdout);
  return 0;
}

void add_common(CLI::App& command, bench::UcpIfuncOptions& options) {
  command.add_option("--transport", options.transport, "shm or tcp")->check(CLI::IsMember({"shm", "tcp"}));
  command.add_option("--memory", options.memory, "Slots in memory that UCX allocated, or in the program's own")
      ->check(CLI::IsMember({"allocated", "own"}));
  command.add_flag("--read", options.read, "The target reads the payload, as well as counting");
  command.add_option("--largest", options.largest, "The largest payload, in bytes")
      ->check(CLI::Range(size_t{1}, size_t{16} << 20));
}

}  // namespace

void add_bench_ucp_ifunc(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand(
      "ucp-ifunc", "The papers' own API beside UCX Active Messages, over payload sizes (2021 paper, Figures 3 and 4)");
  const auto options = std::make_shared<bench::UcpIfuncOptions>();
  add_common(*command, *options);
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = bench_ucp_ifunc(*options); });

  // The benchmark's second process; for itself only.
  auto* const target = bench_command.add_subcommand("ucp-ifunc-target", "")->group("");
  const auto target_options = std::make_shared<bench::UcpIfuncOptions>();
  add_common(*target, *target_options);
  target->callback([target_options, &exit_code] { exit_code = bench::run_ucp_ifunc_target(*target_options); });
}

}  // namespace tc::command
