// SPDX-License-Identifier: Apache-2.0
//
// The clients' process: measures, and reports.
#include "mixed/mixed.h"

#include <utility>

#include "common/ping.h"
#include "common/progress.h"
#include "floor/raw_memory.h"
#include "mixed/am_client.h"
#include "mixed/measure.h"
#include "mixed/node_client.h"

namespace tc::bench {

namespace {

constexpr uint64_t flag_rounds = 20'000;
constexpr uint32_t warm_up_ms = 20, warm_up_calls = 3;

struct Named {
  MixedMode mode;
  const char* title;
  const char* key;
};
constexpr std::array named{Named{MixedMode::ifunc, "Ifunc", "ifunc"}, Named{MixedMode::am, "Active Message", "am"},
                           Named{MixedMode::am_worker, "  on a worker thread", "am_worker"}};

// Each is one figure of a run, in us.
struct QueueSamples {
  Samples<MixedMode> first, last, largest_gap;
};
struct SmallSamples {
  Samples<MixedMode> median, p99, most, calls;  // `calls` is a number
};

class Mixed {
 public:
  Mixed(const MixedOptions& options, Pair pair)
      : options_(options), pair_(std::move(pair)), work_(LongWork::of_us(options.long_us)) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Meanwhile poll() {
    return [this] {
      for (auto& clients : clients_) clients.poll();
    };
  }
  MixedClients& clients_of(MixedMode mode) { return clients_[static_cast<size_t>(mode)]; }
  Status connect();
  Result<MixedClients> nodes(const std::string& target) const;
  Result<MixedClients> am(const std::string& target, MixedMode mode, std::string& addresses) const;
  template <class Measure>
  Status while_target_serves(MixedMode mode, Measure measure);
  Status flags();
  Status warm_up();
  Status queue(MixedMode mode);
  Status small_calls(MixedMode mode, uint32_t queue, SmallSamples& into);
  Status one_run();
  void add_small_rows(Table& table, const char* title, const SmallSamples& samples) const;
  std::string table() const;
  Json json() const;

  const MixedOptions& options_;
  Pair pair_;
  const LongWork work_;
  std::unique_ptr<RawMemory> flags_;
  std::array<MixedClients, mixed_modes.size()> clients_;
  std::vector<double> flag_ns_;
  QueueSamples queue_;
  SmallSamples beside_, alone_;
  Progress progress_{"mixed"};
};

Result<MixedClients> Mixed::nodes(const std::string& target) const {
  MixedClients clients;
  for (auto* const client : {&clients.first, &clients.second}) {
    TC_ASSIGN(auto made, NodeClient::create(pair_.transport, work_));
    TC_CHECK(made->connect(target));
    *client = std::move(made);
  }
  return clients;
}

// Appends their own addresses, in the order of their numbers.
Result<MixedClients> Mixed::am(const std::string& target, MixedMode mode, std::string& addresses) const {
  const bool on_worker = mode == MixedMode::am_worker;
  uint32_t number = on_worker ? 2 : 0;
  MixedClients clients;
  for (auto* const client : {&clients.first, &clients.second}) {
    TC_ASSIGN(auto made, AmClient::create(pair_.transport.ucx_tls, number++,
                                          on_worker ? am_long_on_worker_id : am_long_in_handler_id, work_));
    TC_CHECK(made->connect(target));
    TC_ASSIGN(const auto address, made->address());
    addresses += address + " ";
    *client = std::move(made);
  }
  return clients;
}

Status Mixed::connect() {
  TC_ASSIGN(const auto line, pair_.talk().hear());
  std::string node_target, am_target, flags, addresses;
  read_words(line, node_target, am_target, flags);
  TC_ASSIGN(flags_, RawMemory::open(flags));
  for (const auto mode : {MixedMode::am, MixedMode::am_worker}) {
    TC_ASSIGN(clients_of(mode), am(am_target, mode, addresses));
  }
  TC_CHECK(pair_.talk().tell(addresses, "connected"));
  TC_ASSIGN(clients_of(MixedMode::ifunc), nodes(node_target));  // the target polls while it waits for the next order
  return {};
}

template <class Measure>
Status Mixed::while_target_serves(MixedMode mode, Measure measure) {
  TC_CHECK(pair_.talk().tell(fmt::format("serve {}", mode_name(mode)), "go", poll()));
  TC_CHECK(measure(clients_of(mode)));
  flags_->flags().send();
  return pair_.talk().expect("done", poll());
}

Status Mixed::flags() {
  TC_ASSIGN(flag_ns_.emplace_back(), pair_.measure(fmt::format("flags {}", flag_rounds), poll(),
                                                   [this] { return ping(flags_->flags(), flag_rounds); }));
  return {};
}

// Every way once, unmeasured: connections wire up lazily, code is loaded and compiled for this CPU.
Status Mixed::warm_up() {
  for (const auto mode : mixed_modes)
    TC_CHECK(while_target_serves(mode, [](MixedClients& clients) -> Status {
      TC_CHECK(measure_queue(*clients.first, warm_up_calls));
      TC_CHECK(measure_small_calls(clients, 1, warm_up_ms));
      return {};
    }));
  return pair_.talk().tell("tune", "tuned", poll());
}

Status Mixed::queue(MixedMode mode) {
  return while_target_serves(mode, [&](MixedClients& clients) -> Status {
    TC_ASSIGN(const auto times, measure_queue(*clients.first, options_.calls));
    queue_.first.add(mode, times.first_us);
    queue_.last.add(mode, times.last_us);
    queue_.largest_gap.add(mode, times.largest_gap_us);
    return {};
  });
}

Status Mixed::small_calls(MixedMode mode, uint32_t queue, SmallSamples& into) {
  return while_target_serves(mode, [&](MixedClients& clients) -> Status {
    TC_ASSIGN(const auto us, measure_small_calls(clients, queue, options_.phase_ms));
    into.median.add(mode, quantile(us, 0.5));
    into.p99.add(mode, quantile(us, 0.99));
    into.most.add(mode, quantile(us, 1));
    into.calls.add(mode, static_cast<double>(us.size()));
    return {};
  });
}

Status Mixed::one_run() {
  TC_CHECK(flags());
  for (const auto mode : mixed_modes) TC_CHECK(small_calls(mode, 0, alone_));
  for (const auto mode : mixed_modes) TC_CHECK(queue(mode));
  for (const auto mode : mixed_modes) TC_CHECK(small_calls(mode, options_.calls, beside_));
  return {};
}

Status Mixed::run() {
  TC_CHECK(connect());
  TC_CHECK(warm_up());
  for (int run = 0; run < options_.runs; ++run) {
    progress_.show(run, options_.runs, fmt::format("run {} of {}", run + 1, options_.runs));
    TC_CHECK(one_run());
  }
  pair_.placement.set_flags(flag_ns_);
  return pair_.talk().say("end");
}

void Mixed::add_small_rows(Table& table, const char* title, const SmallSamples& samples) const {
  constexpr auto us = "{:.1f}", ratio = "{:.2g}";
  for (const auto& [mode, name, key] : named) {
    const auto median = samples.median.of(mode), p99 = samples.p99.of(mode), most = samples.most.of(mode);
    table.row({mode == named.front().mode ? title : "", name, number(median.median, us), quartiles(median, us),
               number(samples.median.ratio(mode, MixedMode::am).median, ratio), number(p99.median, us),
               quartiles(p99, us), number(most.median, us), quartiles(most, us),
               number(samples.calls.of(mode).median, "{:.0f}")});
  }
}

std::string Mixed::table() const {
  const auto introduction = fmt::format(
      "Long calls at one target, {}, UCX {}, {} interleaved runs, two pinned processes.\n"
      "{}.\n"
      "The first client queues {} calls of {} us. Medians with quartiles; x AM is the median of the runs' own "
      "ratios.\n\n"
      "Answers to the first client, ms after it began to call\n",
      options_.transport, pair_.machine.ucx, options_.runs, format_placement(pair_.placement), options_.calls,
      options_.long_us);
  Table queue(introduction,
              {{"", -20, 8}, {"first", 10}, {"", 20}, {"last", 10}, {"", 20}, {"largest gap", 13}, {"", 20}});
  for (const auto& [mode, name, key] : named) {
    std::vector<std::string> row{name};
    for (const auto* const samples : {&queue_.first, &queue_.last, &queue_.largest_gap}) {
      const auto value = samples->of(mode);
      row.insert(row.end(), {number(value.median / 1000, "{:.2f}"), quartiles(value, "{:.2f}", 1000)});
    }
    queue.row(row);
  }
  Table small("\nSmall calls of the second client, one at a time, us\n", {{"", -6},
                                                                          {"", -20, 2},
                                                                          {"median", 10},
                                                                          {"", 22},
                                                                          {"x AM", 10},
                                                                          {"p99", 12},
                                                                          {"", 22},
                                                                          {"max", 12},
                                                                          {"", 22},
                                                                          {"calls", 8}});
  add_small_rows(small, "alone", alone_);
  add_small_rows(small, "beside", beside_);
  return queue.take() + small.take();
}

void put_small_calls(Json& root, const char* name, const SmallSamples& samples) {
  for (const auto& [mode, title, key] : named) {
    auto& object = root[name][key];
    put(object, "median_us", samples.median.of(mode));
    put(object, "p99_us", samples.p99.of(mode));
    put(object, "max_us", samples.most.of(mode));
    put(object, "calls_per_run", samples.calls.of(mode));
    if (mode == MixedMode::am) continue;
    put(object, "median_ratio_to_am", samples.median.ratio(mode, MixedMode::am));
  }
}

Json Mixed::json() const {
  auto root = json_head("mixed", options_.transport, pair_.machine, options_.runs);
  put_machine(root, pair_.machine);
  put_placement(root, pair_.placement);
  root["calls"] = options_.calls;
  root["long_us"] = options_.long_us;
  root["rounds"] = work_.rounds;
  root["phase_ms"] = options_.phase_ms;
  for (const auto& [mode, title, key] : named) {
    auto& object = root["first"][key];
    put(object, "first_us", queue_.first.of(mode));
    put(object, "last_us", queue_.last.of(mode));
    put(object, "largest_gap_us", queue_.largest_gap.of(mode));
  }
  put_small_calls(root, "beside", beside_);
  put_small_calls(root, "alone", alone_);
  return root;
}

}  // namespace

Result<Report> run_mixed(const MixedOptions& options) {
  if (const auto queue_ms = uint64_t{options.calls} * options.long_us / 1000; queue_ms > most_queue_ms)
    return fail(TC_ERR_INVALID, "the queue takes {} ms when it may take {}", queue_ms, most_queue_ms);
  TC_ASSIGN(auto pair, Pair::start("mixed-target", options.transport));
  Mixed mixed(options, std::move(pair));
  TC_CHECK(mixed.run());
  return mixed.report();
}

}  // namespace tc::bench
