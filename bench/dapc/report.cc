// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "common/json.h"
#include "common/network.h"
#include "dapc/dapc.h"

namespace tc::bench {

namespace {

using nlohmann::ordered_json;

ordered_json as_json(const DapcPoint& p) {
  ordered_json point;
  point["servers"] = p.servers;
  point["depth"] = p.depth;
  point["inflight"] = p.inflight;
  point["verified"] = true;  // a wrong answer ends the benchmark
  point["answers"] = p.answers;
  for (const auto& [mode, rate] : p.rate) {
    ordered_json one;
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

std::string with_spread(const Summary& s) { return fmt::format("{:.3f} [{:.3f}, {:.3f}]", s.median, s.low, s.high); }

}  // namespace

std::string format_table(const DapcResult& r) {
  std::string out = fmt::format(
      "Distributed pointer chase over {}, UCX {}, {}.\n"
      "{} interleaved runs of about {} ms for each mode, {} entries a server, seed {}; all answers are right.\n"
      "Chases per second: medians with quartiles; ratios are medians of the runs' own ratios.\n\n"
      "{:>7}{:>7}{:>9}  {:<20}{:>11}{:>24}{:>8}{:>8}{:>10}{}\n",
      describe_network(r.options.transport, r.namespaces, r.why_no_namespaces), r.ucx_version, r.machine.cpu,
      r.options.runs, r.options.run_ms, r.options.shard_entries, r.options.seed, "servers", "depth", "inflight", "mode",
      "chases/s", "", "x AM", "x GET", "of bound", r.options.languages.empty() ? "" : fmt::format("{:>22}", "x C"));
  auto to = std::back_inserter(out);
  for (const auto& p : r.points) {
    for (const auto& [mode, rate] : p.rate) {
      const auto bound = p.fraction_of_bound.find(mode);
      const auto to_c = p.ratio_to_c.find(mode);
      fmt::format_to(to, "{:>7}{:>7}{:>9}  {:<20}{:>11.4g}{:>24}{:>8.3f}{:>8.3f}{:>10}{}\n", p.servers, p.depth,
                     p.inflight, mode_name(mode), rate.median, fmt::format("[{:.4g}, {:.4g}]", rate.low, rate.high),
                     p.ratio_to_am.at(mode).median, p.ratio_to_get.at(mode).median,
                     bound != p.fraction_of_bound.end() ? fmt::format("{:.3f}", bound->second.median) : "-",
                     to_c != p.ratio_to_c.end() ? fmt::format("{:>22}", with_spread(to_c->second)) : "");
    }
    fmt::format_to(to, "{:>25}one GET step {:.2f} us", "", p.get_us.median);
    if (p.one_way_us.median > 0)
      fmt::format_to(to, "; one hop of an ifunc round all servers {:.2f} us, between two {:.2f} us",
                     p.one_way_us.median, p.pair_one_way_us.median);
    out += "\n";
  }
  if (!r.complete) out += "Stopped before the end.\n";
  return out;
}

std::string format_json(const DapcResult& r) {
  ordered_json root;
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
  root["points"] = ordered_json::array();
  for (const auto& point : r.points) root["points"].push_back(as_json(point));
  put_machine(root, r.machine);
  return root.dump(2) + "\n";
}

}  // namespace tc::bench
