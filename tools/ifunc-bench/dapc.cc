// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench dapc`.
#include "dapc/dapc.h"

#include <memory>

#include "common/node.h"
#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"
#include "ifunc/stop_signals.h"

namespace tc::command {

namespace {

int bench_dapc(bench::DapcOptions options) {
  StopSignals signals;  // before anything starts: the servers shall not get them
  std::atomic<bool> stop{false};
  options.stop = &stop;
  const auto started = signals.start({.stop = [&](int) { stop = true; }, .reload = [&] { stop = true; }}, {});
  const auto result = started ? bench::run_dapc(options) : fail(started.error());
  signals.finish();
  const int printed = print(result, options.json);
  return !result || result->json["complete"] ? printed : 130;
}

}  // namespace

void add_dapc(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand(
      "dapc", "Distributed pointer chase: ifuncs beside UCX Active Messages and GETs, by depth and servers");
  const auto options = std::make_shared<bench::DapcOptions>();
  command
      ->add_option("--transport", options->transport,
                   "tcp (between network namespaces, as root), tls (encrypted) or shm")
      ->check(CLI::IsMember(bench::transport_names()))
      ->capture_default_str();
  command->add_option("--servers", options->servers, "Numbers of servers")
      ->delimiter(',')
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  command->add_option("--depth", options->depths, "Steps of a chase")
      ->delimiter(',')
      ->check(CLI::Range(1u, 65000u))
      ->capture_default_str();
  command->add_option("--inflight", options->inflight, "Chases under way at a time")
      ->delimiter(',')
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--run-ms", options->run_ms, "About so long does one mode chase in one run")
      ->check(CLI::Range(1u, 60'000u))
      ->capture_default_str();
  command->add_option("--shard", options->shard_entries, "Entries of a server's part of the table")
      ->check(CLI::Range(2u, 1u << 26))
      ->capture_default_str();
  command->add_option("--ifunc", options->chaser, "Chase by this .ifunc file (chaser.jl) instead of by chaser.c")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command
      ->add_option("--lang", options->languages, "Chase in these languages as well, beside C; each needs its compiler")
      ->delimiter(',')
      ->check(CLI::IsMember({"c", "julia", "rust"}));
  command->add_option("--seed", options->seed, "Of the table and of where chases start")->capture_default_str();
  command->add_flag("--loopback", options->loopback, "tcp: no network namespaces, even as root");
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] {
    std::erase(options->languages, "c");  // it is always there
    exit_code = bench_dapc(*options);
  });
}

}  // namespace tc::command
