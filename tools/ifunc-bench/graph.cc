// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench graph`.
#include <memory>

#include "common/node.h"
#include "graph/graph_bench.h"
#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_graph(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand(
      "graph", "Breadth-first search over a sharded graph: ifuncs at the servers beside a client that GETs rows");
  const auto options = std::make_shared<bench::GraphOptions>();
  command
      ->add_option("--transport", options->transport,
                   "tcp (between network namespaces, as root), tls (encrypted) or shm")
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

}  // namespace tc::command
