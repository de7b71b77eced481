// SPDX-License-Identifier: Apache-2.0
#include "dapc/dapc.h"

#include <algorithm>

#include "common/embedded.h"
#include "common/progress.h"
#include "dapc/setting.h"

namespace tc::bench {

namespace {

class Sweep {
 public:
  explicit Sweep(const DapcOptions& options) : options_(options) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Status prepare();
  Status sweep_servers(uint32_t servers);
  Status measure(Setting& setting, DapcPoint point);
  void show(const DapcPoint& point, int run);
  Json json_of(const DapcPoint& point) const;
  Json json() const;
  std::string table() const;

  const DapcOptions& options_;
  Site site_;
  Setting::Translations translations_;
  std::vector<DapcPoint> points_;
  bool complete_ = false;  // false: stopped before the end
  Progress progress_{"dapc"};
  double done_ = 0, total_ = 0;  // runs
};

Status Sweep::prepare() {
  const auto& o = options_;
  for (const auto& language : o.languages) {
    TC_ASSIGN(translations_[mode_in(language)], build_chaser(language));
  }
  TC_ASSIGN(site_, Site::prepare(o.transport, o.loopback, std::ranges::max(o.servers)));
  total_ = static_cast<double>(o.servers.size() * o.depths.size() * o.inflight.size()) * (o.runs + 1);
  return {};
}

void Sweep::show(const DapcPoint& point, int run) {
  progress_.show(done_, total_,
                 fmt::format("{} servers, depth {}, {} in flight, run {} of {}", point.servers, point.depth,
                             point.inflight, run, options_.runs));
}

Status Sweep::measure(Setting& setting, DapcPoint point) {
  show(point, 0);
  TC_CHECK(setting.calibrate(point));
  ++done_;
  Status state;
  for (int run = 1; run <= options_.runs && state; ++run) {
    show(point, run);
    auto ran = setting.run(point);
    if (ran)
      point.add(*ran);
    else
      state = fail(std::move(ran).error());
    ++done_;
  }
  if (!point.get_us.empty() && (state || state.error().code == TC_ERR_CLOSED)) points_.push_back(std::move(point));
  return state;
}

Status Sweep::sweep_servers(uint32_t servers) {
  TC_ASSIGN(const auto setting, Setting::create(options_, servers, site_, translations_));
  for (const auto depth : options_.depths)
    for (const auto inflight : options_.inflight) {
      DapcPoint point;
      point.servers = servers;
      point.depth = depth;
      point.inflight = inflight;
      TC_CHECK(measure(*setting, std::move(point)));
    }
  return {};
}

Status Sweep::run() {
  TC_CHECK(prepare());
  for (const auto servers : options_.servers) {
    auto swept = sweep_servers(servers);
    if (!swept && swept.error().code == TC_ERR_CLOSED && options_.stop != nullptr && options_.stop->load()) return {};
    if (!swept) return context(fmt::format("{} servers", servers), std::move(swept).error());
  }
  complete_ = true;
  return {};
}

Json Sweep::json_of(const DapcPoint& p) const {
  Json point;
  point["servers"] = p.servers;
  point["depth"] = p.depth;
  point["inflight"] = p.inflight;
  point["verified"] = true;  // a wrong answer ends the benchmark
  point["answers"] = p.answers;
  for (const auto& [mode, values] : p.rate.all()) {
    Json one;
    put(one, "chases_per_s", p.rate.of(mode));
    one["chases_per_run"] = p.chases.at(mode);
    if (mode != ChaseMode::am) put(one, "rate_ratio_to_am", p.rate.ratio(mode, ChaseMode::am));
    if (is_ifunc(mode)) {
      put(one, "rate_ratio_to_get", p.rate.ratio(mode, ChaseMode::get));
      if (const auto found = p.fraction_of_bound(mode, p.one_way_us)) put(one, "fraction_of_bound_vs_get", *found);
      if (const auto found = p.fraction_of_bound(mode, p.pair_one_way_us))
        put(one, "fraction_of_pair_bound_vs_get", *found);
      if (const auto found = p.ratio_to_c(mode)) put(one, "rate_ratio_to_c", *found);
      if (const auto found = p.executed.find(mode); found != p.executed.end()) one["executed_per_run"] = found->second;
    }
    point[std::string(mode_name(mode))] = one;
  }
  if (!p.one_way_us.empty()) {
    put(point, "one_way_us", summarize(p.one_way_us));
    put(point, "pair_one_way_us", summarize(p.pair_one_way_us));
  }
  put(point, "get_us", summarize(p.get_us));
  return point;
}

std::string Sweep::table() const {
  const auto introduction = fmt::format(
      "Distributed pointer chase over {}, UCX {}, {}.\n"
      "{} interleaved runs of about {} ms for each mode, {} entries a server, seed {}; all answers are right.\n"
      "Chases per second: medians with quartiles; ratios are medians of the runs' own ratios.\n\n",
      describe_network(options_.transport, site_.network), site_.machine.ucx, site_.machine.cpu, options_.runs,
      options_.run_ms, options_.shard_entries, options_.seed);
  std::vector<Table::Column> columns{{"servers", 7}, {"depth", 7}, {"inflight", 9}, {"mode", -20, 2}, {"chases/s", 11},
                                     {"", 24},       {"x AM", 8},  {"x GET", 8},    {"of bound", 10}};
  if (!options_.languages.empty()) columns.push_back({"x C", 22});
  Table table(introduction, columns);
  for (const auto& p : points_) {
    for (const auto& [mode, values] : p.rate.all()) {
      const auto rate = p.rate.of(mode);
      const auto bound = p.fraction_of_bound(mode, p.one_way_us), to_c = p.ratio_to_c(mode);
      table.row({std::to_string(p.servers), std::to_string(p.depth), std::to_string(p.inflight),
                 std::string(mode_name(mode)), number(rate.median, "{:.4g}"), quartiles(rate, "{:.4g}"),
                 number(p.rate.ratio(mode, ChaseMode::am).median, "{:.3f}"),
                 number(p.rate.ratio(mode, ChaseMode::get).median, "{:.3f}"),
                 bound ? number(bound->median, "{:.3f}") : "-", to_c ? with_quartiles(*to_c, "{:.3f}") : ""});
    }
    table.text(fmt::format("{:>25}one GET step {:.2f} us", "", summarize(p.get_us).median));
    if (!p.one_way_us.empty())
      table.text(fmt::format("; one hop of an ifunc round all servers {:.2f} us, between two {:.2f} us",
                             summarize(p.one_way_us).median, summarize(p.pair_one_way_us).median));
    table.text("\n");
  }
  if (!complete_) table.text("Stopped before the end.\n");
  return table.take();
}

Json Sweep::json() const {
  auto root = json_head("dapc", options_.transport, site_.machine, options_.runs);
  root["run_ms"] = options_.run_ms;
  root["seed"] = options_.seed;
  root["shard_entries"] = options_.shard_entries;
  if (!options_.chaser.empty()) root["ifunc"] = options_.chaser;
  if (!options_.languages.empty()) root["languages"] = options_.languages;
  root["namespaces"] = site_.network.network != nullptr;
  root["complete"] = complete_;
  root["points"] = Json::array();
  for (const auto& point : points_) root["points"].push_back(json_of(point));
  put_machine(root, site_.machine);
  return root;
}

}  // namespace

Result<Report> run_dapc(const DapcOptions& options) {
  Sweep sweep(options);
  TC_CHECK(sweep.run());
  return sweep.report();
}

}  // namespace tc::bench
