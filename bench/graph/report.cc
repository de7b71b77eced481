// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <fmt/format.h>

#include "common/network.h"
#include "graph/graph_bench.h"

namespace tc::bench {

namespace {

std::string graph_name(const GraphResult& r) {
  if (!r.options.shards.empty()) return r.options.shards;
  return fmt::format("R-MAT, scale {}, edge factor {}, seed {}, both ways", r.options.scale, r.options.edge_factor,
                     r.options.seed);
}

double bytes_moved(const ModeResult& m) { return m.bytes_to_client + m.bytes_from_client + m.bytes_between_servers; }

}  // namespace

std::string format_table(const GraphResult& r) {
  const auto introduction = fmt::format(
      "Breadth-first search over {}, {} servers, UCX {}, {} x {}.\n"
      "{}: {} vertices, {} edges; a search reaches {:.0f} vertices by {:.0f} edges on {:.1f} levels (means).\n"
      "{} interleaved runs of {} searches for each way; the levels of all {} searches are right.\n"
      "Medians with quartiles; ratios are medians of the runs' own ratios; bytes are payloads of one search.\n\n",
      describe_network(r.options.transport, r.namespaces, r.why_no_namespaces), r.options.servers, r.machine.ucx,
      r.machine.cores, r.machine.cpu, graph_name(r), r.vertices, r.edges, r.reached, r.edges_searched, r.levels,
      r.options.runs, r.options.searches, r.verified);
  Table table(introduction, {{"", -17},
                             {"searches/s", 10},
                             {"", 22},
                             {"M edges/s", 13},
                             {"x GET", 8},
                             {"x indexed", 12},
                             {"requests", 11},
                             {"client bytes", 13},
                             {"between servers", 16}});
  for (const auto mode : search_modes) {
    const auto& m = r.modes.at(mode);
    table.row({mode_name(mode), number(m.searches_per_s.median, "{:.4g}"), quartiles(m.searches_per_s, "{:.4g}"),
               number(m.edges_per_s.median / 1e6, "{:.4g}"), number(m.ratio_to_get.median, "{:.3f}"),
               number(m.ratio_to_get_indexed.median, "{:.3f}"), number(m.requests, "{:.0f}"),
               number(m.bytes_to_client + m.bytes_from_client, "{:.0f}"), number(m.bytes_between_servers, "{:.0f}")});
  }
  return table.take();
}

std::string format_json(const GraphResult& r) {
  Json root;
  root["bench"] = "graph";
  root["transport"] = r.options.transport;
  root["namespaces"] = r.namespaces;
  root["servers"] = r.options.servers;
  root["graph"] = graph_name(r);
  root["vertices"] = r.vertices;
  root["edges"] = r.edges;
  root["runs"] = r.options.runs;
  root["searches_per_run"] = r.options.searches;
  root["reached_per_search"] = r.reached;
  root["edges_per_search"] = r.edges_searched;
  root["levels_per_search"] = r.levels;
  for (const auto mode : search_modes) {
    const auto& m = r.modes.at(mode);
    Json one;
    put(one, "searches_per_s", m.searches_per_s);
    put(one, "edges_per_s", m.edges_per_s);
    if (is_ifunc(mode)) {
      put(one, "rate_ratio_to_get", m.ratio_to_get);
      put(one, "rate_ratio_to_get_indexed", m.ratio_to_get_indexed);
    }
    one["requests_per_search"] = m.requests;
    root[mode_name(mode)] = one;
  }
  put(root, "rate_ratio_to_get", r.modes.at(SearchMode::ifunc).ratio_to_get);
  auto& bytes = root["bytes_moved"];  // payloads of one search
  for (const auto mode : search_modes) {
    const auto& m = r.modes.at(mode);
    bytes[mode_name(mode)] = {{"to_client", m.bytes_to_client},
                              {"from_client", m.bytes_from_client},
                              {"between_servers", m.bytes_between_servers},
                              {"all", bytes_moved(m)}};
  }
  root["verified"] = true;  // a wrong answer ends the benchmark
  root["searches_verified"] = r.verified;
  put_machine(root, r.machine);
  return text_of(root);
}

}  // namespace tc::bench
