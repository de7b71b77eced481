// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench`: measures, side by side with what a UCX program without us would do.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "dapc/dapc.h"
#include "graph/graph_bench.h"
#include "ifunc/commands.h"
#include "ifunc/stop_signals.h"
#include "token/token.h"
#include "tsi/tsi.h"

namespace tc::command {

namespace {

int complain(const Error& error) {
  std::fprintf(stderr, "ifunc bench: %s\n", error.message.c_str());
  return 1;
}

// What was measured, as JSON or as a table.
template <class R>
int print(const Result<R>& result, bool json) {
  if (!result) return complain(result.error());
  std::fputs((json ? bench::format_json(*result) : bench::format_table(*result)).c_str(), stdout);
  return 0;
}

void add_tsi(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand(
      "tsi", "Target-side increment: latency, rate and first execution, beside UCX Active Messages");
  const auto options = std::make_shared<bench::TsiOptions>();
  command->add_option("--transport", options->transport, "shm or tcp")->check(CLI::IsMember(bench::transport_names()));
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000));
  command->add_option("--latency-rounds", options->latency_rounds, "Round trips in a run (0: by transport)");
  command->add_option("--rate-calls", options->rate_calls, "Calls in a run (0: by transport)");
  command->add_option("--first-samples", options->first_samples, "Never-seen ifuncs sent")
      ->check(CLI::Range(1, 100000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_tsi(*options), options->json); });
}

int bench_token(const bench::TokenOptions& options) {
  const auto result = bench::run_token(options);
  if (!result) return complain(result.error());
  std::fputs(bench::format_token(options, *result).c_str(), stdout);
  return 0;
}

void add_token(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand(
      "token", "A token round the nodes of a cluster: `ifunc cluster 4 -- ifunc bench token`");
  const auto options = std::make_shared<bench::TokenOptions>();
  if (const char* addresses = std::getenv("TC_CLUSTER_ADDRESSES"); addresses != nullptr) options->addresses = addresses;
  command->add_option("--addresses", options->addresses, "The cluster's nodes (TC_CLUSTER_ADDRESSES)");
  command->add_option("--hops", options->hops, "Hops in a run")->check(CLI::Range(1u, 65000u));
  command->add_option("--runs", options->runs, "Runs")->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = bench_token(*options); });
}

int bench_dapc(bench::DapcOptions options) {
  StopSignals signals;  // before anything starts: the servers shall not get them
  std::atomic<bool> stop{false};
  options.stop = &stop;
  signals.start([&] { stop = true; });
  const auto result = bench::run_dapc(options);
  signals.finish();
  const int printed = print(result, options.json);
  return !result || result->complete ? printed : 130;
}

void add_dapc(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand(
      "dapc", "Distributed pointer chase: ifuncs beside UCX Active Messages and GETs, by depth and servers");
  const auto options = std::make_shared<bench::DapcOptions>();
  command->add_option("--transport", options->transport, "tcp (between network namespaces, as root) or shm")
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

// A server's process of `ifunc bench dapc`; for itself only.
void add_dapc_server(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand("dapc-server", "")->group("");
  const auto options = std::make_shared<bench::DapcServerOptions>();
  command->add_option("--transport", options->transport);
  command->add_option("--index", options->index);
  command->add_option("--servers", options->servers);
  command->add_option("--shard", options->shard_entries);
  command->add_option("--seed", options->seed);
  command->add_option("--bitcode", options->bitcode_cluster);
  command->add_option("--objects", options->object_cluster);
  command->add_option("--trust", options->trust);
  command->callback([options, &exit_code] { exit_code = bench::run_dapc_server(*options); });
}

void add_graph(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand(
      "graph", "Breadth-first search over a sharded graph: ifuncs at the servers beside a client that GETs rows");
  const auto options = std::make_shared<bench::GraphOptions>();
  command->add_option("--transport", options->transport, "tcp (between network namespaces, as root) or shm")
      ->check(CLI::IsMember(bench::transport_names()))
      ->capture_default_str();
  command->add_option("--servers", options->servers, "Servers")->check(CLI::Range(1u, 17u))->capture_default_str();
  command->add_option("--shards", options->shards, "A directory of make_shards, in place of a generated graph")
      ->type_name("DIRECTORY");
  command->add_option("--scale", options->scale, "The generated graph has 2^SCALE vertices")
      ->check(CLI::Range(1u, 26u))
      ->capture_default_str();
  command->add_option("--edge-factor", options->edge_factor, "Edges for each vertex of the generated graph")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the graph and of the sources")->capture_default_str();
  command->add_option("--searches", options->searches, "Searches in a run, each from another source")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str();
  command->add_option("--get-window", options->get_window, "GETs on their way at a time, at most")
      ->check(CLI::Range(1u, 1u << 24))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--loopback", options->loopback, "tcp: no network namespaces, even as root");
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_graph(*options), options->json); });
}

// A server's process of `ifunc bench graph`; for itself only.
void add_graph_server(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand("graph-server", "")->group("");
  const auto options = std::make_shared<bench::GraphServerOptions>();
  command->add_option("--transport", options->transport);
  command->add_option("--shard", options->shard);
  command->add_option("--cluster", options->cluster);
  command->add_option("--trust", options->trust);
  command->add_option("--index", options->index);
  command->callback([options, &exit_code] { exit_code = bench::run_graph_server(*options); });
}

// The benchmark's second process; for itself only.
void add_tsi_target(CLI::App& bench_command, int& exit_code) {
  auto* const command = bench_command.add_subcommand("tsi-target", "")->group("");
  const auto options = std::make_shared<bench::TsiOptions>();
  command->add_option("--transport", options->transport);
  command->callback([options, &exit_code] { exit_code = bench::run_tsi_target(options->transport); });
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto* const command = app.add_subcommand("bench", "Measure this machine");
  command->require_subcommand(1);
  add_tsi(*command, exit_code);
  add_token(*command, exit_code);
  add_dapc(*command, exit_code);
  add_bench_languages(*command, exit_code);
  add_bench_tune(*command, exit_code);
  add_bench_ucp_ifunc(*command, exit_code);
  add_bench_report(*command, exit_code);
  add_graph(*command, exit_code);
  add_graph_server(*command, exit_code);
  add_tsi_target(*command, exit_code);
  add_dapc_server(*command, exit_code);
}

}  // namespace tc::command
