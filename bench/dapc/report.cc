// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <fmt/format.h>

#include "common/network.h"
#include "dapc/dapc.h"

namespace tc::bench {

namespace {

Json as_json(const DapcPoint& p) {
  Json point;
  point["servers"] = p.servers;
  point["depth"] = p.depth;
  point["inflight"] = p.inflight;
  point["verified"] = true;  // a wrong answer ends the benchmark
  point["answers"] = p.answers;
  for (const auto& [mode, rate] : p.rate) {
    Json one;
    put(one, "chases_per_s", rate);
    one["chases_per_run"] = p.chases.at(mode);
    if (mode == ChaseMode::get) put(one, "rate_ratio_to_am", p.ratio_to_am.at(mode));
    if (is_ifunc(mode)) {
      put(one, "rate_ratio_to_am", p.ratio_to_am.at(mode));
      put(one, "rate_ratio_to_get", p.ratio_to_get.at(mode));
      if (const auto found = p.fraction_of_bound.find(mode); found != p.fraction_of_bound.end())
        put(one, "fraction_of_bound_vs_get", found->second);
      if (const auto found = p.fraction_of_pair_bound.find(mode); found != p.fraction_of_pair_bound.end())
        put(one, "fraction_of_pair_bound_vs_get", found->second);
      if (const auto found = p.ratio_to_c.find(mode); found != p.ratio_to_c.end())
        put(one, "rate_ratio_to_c", found->second);
      if (const auto found = p.executed.find(mode); found != p.executed.end()) one["executed_per_run"] = found->second;
    }
    point[std::string(mode_name(mode))] = one;
  }
  if (p.one_way_us.median > 0) {
    put(point, "one_way_us", p.one_way_us);
    put(point, "pair_one_way_us", p.pair_one_way_us);
  }
  put(point, "get_us", p.get_us);
  return point;
}

std::string median_of(const std::map<ChaseMode, Summary>& ratios, ChaseMode mode) {
  const auto found = ratios.find(mode);
  return found != ratios.end() ? number(found->second.median, "{:.3f}") : "-";
}

}  // namespace

std::string format_table(const DapcResult& r) {
  const auto introduction = fmt::format(
      "Distributed pointer chase over {}, UCX {}, {}.\n"
      "{} interleaved runs of about {} ms for each mode, {} entries a server, seed {}; all answers are right.\n"
      "Chases per second: medians with quartiles; ratios are medians of the runs' own ratios.\n\n",
      describe_network(r.options.transport, r.namespaces, r.why_no_namespaces), r.ucx_version, r.machine.cpu,
      r.options.runs, r.options.run_ms, r.options.shard_entries, r.options.seed);
  std::vector<Table::Column> columns{{"servers", 7}, {"depth", 7}, {"inflight", 9}, {"mode", -20, 2}, {"chases/s", 11},
                                     {"", 24},       {"x AM", 8},  {"x GET", 8},    {"of bound", 10}};
  if (!r.options.languages.empty()) columns.push_back({"x C", 22});
  Table table(introduction, columns);
  for (const auto& p : r.points) {
    for (const auto& [mode, rate] : p.rate) {
      const auto to_c = p.ratio_to_c.find(mode);
      table.row({std::to_string(p.servers), std::to_string(p.depth), std::to_string(p.inflight),
                 std::string(mode_name(mode)), number(rate.median, "{:.4g}"), quartiles(rate, "{:.4g}"),
                 median_of(p.ratio_to_am, mode), median_of(p.ratio_to_get, mode), median_of(p.fraction_of_bound, mode),
                 to_c != p.ratio_to_c.end() ? with_quartiles(to_c->second, "{:.3f}") : ""});
    }
    table.text(fmt::format("{:>25}one GET step {:.2f} us", "", p.get_us.median));
    if (p.one_way_us.median > 0)
      table.text(fmt::format("; one hop of an ifunc round all servers {:.2f} us, between two {:.2f} us",
                             p.one_way_us.median, p.pair_one_way_us.median));
    table.text("\n");
  }
  if (!r.complete) table.text("Stopped before the end.\n");
  return table.take();
}

std::string format_json(const DapcResult& r) {
  Json root;
  root["bench"] = "dapc";
  root["transport"] = r.options.transport;
  root["ucx"] = r.ucx_version;
  root["runs"] = r.options.runs;
  root["run_ms"] = r.options.run_ms;
  root["seed"] = r.options.seed;
  root["shard_entries"] = r.options.shard_entries;
  if (!r.options.chaser.empty()) root["ifunc"] = r.options.chaser;
  if (!r.options.languages.empty()) root["languages"] = r.options.languages;
  root["namespaces"] = r.namespaces;
  root["complete"] = r.complete;
  root["points"] = Json::array();
  for (const auto& point : r.points) root["points"].push_back(as_json(point));
  put_machine(root, r.machine);
  return text_of(root);
}

}  // namespace tc::bench
