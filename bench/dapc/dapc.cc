// SPDX-License-Identifier: Apache-2.0
#include "dapc/dapc.h"

#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "common/shared_key.h"
#include "dapc/progress.h"
#include "dapc/setting.h"
#include "dapc/translations.h"

namespace tc::bench {

namespace {

class Sweep {
 public:
  explicit Sweep(const DapcOptions& options) { result_.options = options; }
  Status run();
  DapcResult take() { return std::move(result_); }

 private:
  const DapcOptions& options() const noexcept { return result_.options; }
  Status prepare();
  Status sweep_servers(uint32_t servers);
  Status measure(Setting& setting, DapcPoint point);
  void show(const DapcPoint& point, int run);

  DapcResult result_;
  std::optional<SharedKey> key_;
  std::unique_ptr<Network> network_;
  Setting::Translations translations_;
  Progress progress_;
  double done_ = 0, total_ = 0;  // runs
};

uint32_t most_servers(const DapcOptions& options) { return *std::ranges::max_element(options.servers); }

Status Sweep::prepare() {
  for (const auto& language : options().languages) {
    TC_ASSIGN(translations_[mode_in(language)], build_chaser(language));
  }
  TC_ASSIGN(const auto transport, BenchTransport::parse(options().transport));
  if (transport.encrypted()) {
    TC_ASSIGN(key_, SharedKey::make());
  }
  if (transport.by_network) {
    auto chosen = choose_network(options().loopback, most_servers(options()));
    network_ = std::move(chosen.network);
    result_.why_no_namespaces = chosen.why_none;
    result_.namespaces = network_ != nullptr;
  }
  result_.ucx_version = ucp_get_version_string();
  result_.machine = describe_machine(result_.ucx_version);
  const auto& o = options();
  total_ = static_cast<double>(o.servers.size() * o.depths.size() * o.inflight.size()) * (o.runs + 1);
  return {};
}

void Sweep::show(const DapcPoint& point, int run) {
  progress_.show(done_, total_,
                 fmt::format("{} servers, depth {}, {} in flight, run {} of {}", point.servers, point.depth,
                             point.inflight, run, options().runs));
}

Status Sweep::measure(Setting& setting, DapcPoint point) {
  show(point, 0);
  TC_CHECK(setting.calibrate(point));
  ++done_;
  std::vector<DapcRun> runs;
  Status state;
  for (int run = 1; run <= options().runs && state; ++run) {
    show(point, run);
    auto ran = setting.run(point);
    if (ran)
      runs.push_back(std::move(*ran));
    else
      state = fail(std::move(ran).error());
    ++done_;
  }
  if (!runs.empty() && (state || state.error().code == TC_ERR_CLOSED)) {
    summarize_runs(runs, point);
    result_.points.push_back(std::move(point));
  }
  return state;
}

Status Sweep::sweep_servers(uint32_t servers) {
  TC_ASSIGN(const auto setting, Setting::create(options(), servers, network_.get(), translations_));
  for (const auto depth : options().depths)
    for (const auto inflight : options().inflight) {
      DapcPoint point;
      point.servers = servers;
      point.depth = depth;
      point.inflight = inflight;
      TC_CHECK(measure(*setting, point));
    }
  return {};
}

Status Sweep::run() {
  TC_CHECK(prepare());
  for (const auto servers : options().servers) {
    auto swept = sweep_servers(servers);
    if (!swept && swept.error().code == TC_ERR_CLOSED && options().stop != nullptr && options().stop->load()) return {};
    if (!swept) return context(fmt::format("{} servers", servers), std::move(swept).error());
  }
  result_.complete = true;
  return {};
}

}  // namespace

Result<DapcResult> run_dapc(const DapcOptions& options) {
  Sweep sweep(options);
  TC_CHECK(sweep.run());
  return sweep.take();
}

}  // namespace tc::bench
