// SPDX-License-Identifier: Apache-2.0
#include "dapc/setting.h"

#include <algorithm>

#include "05-pointer-chase/chase.h"
#include "base/clock.h"

namespace tc::bench {

namespace {

constexpr uint64_t look_gap_ns = 10'000'000;           // between looks whether all servers live
constexpr uint64_t chases_limit_ns = 300'000'000'000;  // for the chases of one mode in one run
constexpr uint32_t warm_up_depth = 4096;               // so that each server has met each other one
constexpr uint64_t most_chases = 200'000;              // in one run
constexpr uint64_t rounds_in_flight = 2;               // so that filling and draining the pipe matters little

}  // namespace

Result<std::unique_ptr<Setting>> Setting::create(const DapcOptions& options, uint32_t servers, const Site& site,
                                                 const Translations& translations) {
  std::unique_ptr<Setting> made(new Setting(options, servers));
  made->table_.resize(made->entries());
  chase_fill(made->table_.data(), made->entries(), options.seed);
  const auto &tls = site.transport.ucx_tls, host = site.client_host();
  TC_ASSIGN(made->servers_,
            Servers::start("dapc-server",
                           {{"shard", std::to_string(options.shard_entries)}, {"seed", std::to_string(options.seed)}},
                           servers, site));
  TC_ASSIGN(made->am_, AmChaseClient::create(tls, options.shard_entries));
  TC_ASSIGN(made->get_, GetChaseClient::create(tls, options.shard_entries));
  TC_ASSIGN(made->bitcode_, IfuncChaseClient::create(site.transport, host, options.shard_entries, options.chaser));
  TC_ASSIGN(made->object_, IfuncChaseClient::create(site.transport, host, options.shard_entries, options.chaser));
  made->modes_.assign(chase_modes.begin(), chase_modes.end());
  for (const auto& [mode, bundle] : translations) {
    TC_CHECK(made->bitcode_->add(mode, bundle));
    made->modes_.push_back(mode);
  }
  made->give_up_ns_ = now_ns() + chases_limit_ns;
  auto ready = made->connect();
  if (ready) ready = made->warm_up();
  if (!ready) return fail(made->servers_->explain(ready.error()));
  return made;
}

// Everything that must not be waited for in vain.
Status Setting::watch() {
  const auto now = now_ns();
  if (now < next_look_ns_) return {};
  next_look_ns_ = now + look_gap_ns;
  if (options_.stop != nullptr && options_.stop->load()) return fail(TC_ERR_CLOSED, "stopped");
  TC_CHECK(servers_->alive());
  if (now < give_up_ns_) return {};
  return fail(TC_ERR_TIMEOUT, "mode {} did not end within {} s", mode_, chases_limit_ns / 1'000'000'000);
}

Status Setting::tell(std::string_view order) {
  give_up_ns_ = now_ns() + chases_limit_ns;
  return servers_->tell(std::string(order), std::string(order), [this] { return watch(); });
}

Status Setting::switch_to(ChaseMode mode) {
  mode_ = mode_name(mode);
  return tell(mode_name(served_mode(mode)));
}

Status Setting::connect() {
  std::vector<std::string> am, bitcode, object;
  std::vector<GetContact> get;
  for (const auto& contact : servers_->contacts())
    if (!read_words(contact, am.emplace_back(), get.emplace_back(), bitcode.emplace_back(), object.emplace_back()))
      return fail(TC_ERR_INTERNAL, "a server said '{}' when it was to say how to reach it", contact);
  const auto watching = [this] { return watch(); };
  TC_ASSIGN(const auto address, am_->address());
  TC_CHECK(servers_->tell(fmt::format("{} {}", address, fmt::join(am, " ")), "connected", watching));
  TC_CHECK(am_->connect(am));
  TC_CHECK(get_->connect(get));
  TC_CHECK(switch_to(ChaseMode::ifunc_bitcode));
  TC_CHECK(bitcode_->connect(bitcode, watching));
  TC_CHECK(switch_to(ChaseMode::ifunc_object));
  return object_->connect(object, watching);
}

// Connections are made lazily, code travels with its first call and is compiled for this CPU: all of that before
// anything is measured.
Status Setting::warm_up() {
  DapcPoint point;
  point.servers = servers_count_;
  point.depth = warm_up_depth;
  point.inflight = std::max<uint32_t>(2, servers_count_ / 2);
  for (const auto mode : modes_) {
    TC_ASSIGN(const auto first, chase(mode, point, 2ull * point.inflight));
    (void)first;
    if (served_mode(mode) != ChaseMode::ifunc_bitcode) continue;
    if (servers_count_ > 1 && !is_translation(mode))
      TC_CHECK(bitcode_->hop_us(servers_count_, [this] { return watch(); }));
    TC_CHECK(tell("settle"));
  }
  return {};
}

ChaseClient& Setting::client(ChaseMode mode) {
  switch (mode) {
    case ChaseMode::am: return *am_;
    case ChaseMode::get: return *get_;
    case ChaseMode::ifunc_object: return *object_;
    default: break;
  }
  bitcode_->chase_by(mode);
  return *bitcode_;
}

// The same starts for all modes and runs, and where each must lead.
Status Setting::prepare_chases(uint32_t depth, uint64_t count) {
  if (depth != expected_depth_) {
    expected_.clear();
    starts_.clear();
    expected_depth_ = depth;
  }
  while (starts_.size() < count) {
    TC_CHECK(watch());
    starts_.push_back(chase_start(starts_.size(), entries(), options_.seed));
    expected_.push_back(chase_walk(table_.data(), starts_.back(), depth));
  }
  ends_.assign(count, ~uint64_t{0});
  return {};
}

Result<double> Setting::chase(ChaseMode mode, const DapcPoint& point, uint64_t count) {
  TC_CHECK(switch_to(mode));
  TC_CHECK(prepare_chases(point.depth, count));
  Chases chases;
  chases.starts = std::span(starts_).first(count);
  chases.ends = ends_;
  chases.depth = point.depth;
  chases.inflight = static_cast<uint32_t>(std::min<uint64_t>(point.inflight, count));
  const auto started = now_ns();
  auto ran = client(mode).run(chases, [this] { return watch(); });
  const auto spent = now_ns() - started;
  if (!ran && ran.error().code == TC_ERR_CLOSED) return fail(std::move(ran).error());
  if (!ran) return context(fmt::format("mode {}", mode_), servers_->explain(std::move(ran).error()));
  for (uint64_t i = 0; i < count; ++i)
    if (ends_[i] != expected_[i])
      return fail(TC_ERR_INTERNAL, "mode {}: the chase from address {} with depth {} led to {} when it must lead to {}",
                  mode_, starts_[i], point.depth, ends_[i], expected_[i]);
  answers_ += count;
  return static_cast<double>(spent) / 1e9;
}

Status Setting::calibrate(DapcPoint& point) {
  const double wanted = static_cast<double>(options_.run_ms) / 1000;
  for (const auto mode : modes_) {
    if (is_translation(mode)) {  // the same chases as C, so that their ways can be compared as well
      point.chases[mode] = point.chases.at(ChaseMode::ifunc_bitcode);
      continue;
    }
    uint64_t count = point.inflight;
    while (true) {
      TC_ASSIGN(const double seconds, chase(mode, point, count));
      const auto enough = static_cast<uint64_t>(wanted / seconds * static_cast<double>(count));
      const bool known = seconds > wanted / 8 || count == most_chases;
      const auto floor = point.inflight == 1 ? 1 : point.inflight * rounds_in_flight;
      point.chases[mode] = std::clamp<uint64_t>(enough, floor, std::max<uint64_t>(most_chases, floor));
      if (known) break;
      count = std::clamp<uint64_t>(enough / 2, count + 1, std::min(count * 64, most_chases));
    }
  }
  return {};
}

Result<uint64_t> Setting::executed(ChaseMode mode) {
  const bool asked = modes_.size() > chase_modes.size() && served_mode(mode) == ChaseMode::ifunc_bitcode;
  return asked ? servers_->ask_sum("executed", [this] { return watch(); }) : uint64_t{0};
}

Status Setting::compare_executed(ChaseMode mode, DapcPoint& point, uint64_t count) {
  const auto expected = point.executed.try_emplace(ChaseMode::ifunc_bitcode, count).first->second;
  point.executed[mode] = count;
  if (count == expected) return {};
  return fail(TC_ERR_INTERNAL, "mode {}: the servers ran {} ifuncs for chases that take {} in C", mode_, count,
              expected);
}

Result<DapcRun> Setting::run(DapcPoint& point) {
  DapcRun run;
  answers_ = 0;
  for (const auto mode : modes_) {
    const auto count = point.chases.at(mode);
    TC_ASSIGN(const auto before, executed(mode));
    TC_ASSIGN(const double seconds, chase(mode, point, count));
    TC_ASSIGN(const auto after, executed(mode));
    run.rate[mode] = static_cast<double>(count) / seconds;
    if (after > before) TC_CHECK(compare_executed(mode, point, after - before));
  }
  point.answers += answers_;
  if (servers_count_ > 1) {
    TC_CHECK(switch_to(ChaseMode::ifunc_bitcode));
    TC_ASSIGN(run.one_way_us, bitcode_->hop_us(servers_count_, [this] { return watch(); }));
    TC_ASSIGN(run.pair_one_way_us, bitcode_->hop_us(2, [this] { return watch(); }));
  }
  return run;
}

}  // namespace tc::bench
