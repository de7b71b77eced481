// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench bulk`.
#include "bulk/bulk.h"

#include <memory>

#include "common/node.h"
#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_bulk(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand(
      "bulk", "Large payloads in calls and replies, beside memcpy, a raw socket and UCX Active Messages");
  const auto options = std::make_shared<bench::BulkOptions>();
  command
      ->add_option("--transport", options->transport, "shm, tcp, tls (encrypted TCP, beside plain), ucx-shm or ucx-tcp")
      ->check(CLI::IsMember(bench::transport_names()))
      ->capture_default_str();
  command->add_option("--sizes", options->sizes, "Bytes of a payload: 65536, 64KiB, 1MiB, ...")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(bench::least_bulk_bytes, bench::most_bulk_bytes));
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--run-bytes", options->run_bytes, "About as much is carried each way in one run")
      ->transform(CLI::AsSizeValue(false));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_bulk(*options), options->json); });
}

}  // namespace tc::command
