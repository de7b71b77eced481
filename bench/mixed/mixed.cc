// SPDX-License-Identifier: Apache-2.0
//
// The clients' process: measures, and reports.
#include "mixed/mixed.h"

#include <span>
#include <utility>

#include "common/processes.h"
#include "common/progress.h"
#include "floor/raw_memory.h"
#include "mixed/am_client.h"
#include "mixed/measure.h"
#include "mixed/node_client.h"
#include "mixed/rate.h"
#include "mixed/serve.h"

namespace tc::bench {

namespace {

constexpr uint32_t warm_up_ms = 20, warm_up_calls = 3;

constexpr uint32_t brief_us = 50;  // about as long does a call of a rate compute
constexpr uint32_t window = 256;   // calls that a client of a rate keeps in flight: they last until it has slept
constexpr std::array rate_modes{MixedMode::ifunc, MixedMode::ifunc_threads};
constexpr size_t most_rate_clients = 2;

struct Named {
  MixedMode mode;
  const char* title;
  const char* key;
};
constexpr std::array named{
    Named{MixedMode::ifunc, "Ifunc", "ifunc"}, Named{MixedMode::ifunc_threads, "  threads=2", "ifunc_threads"},
    Named{MixedMode::am, "Active Message", "am"}, Named{MixedMode::am_worker, "  on a worker thread", "am_worker"}};

// Each is one figure of a run, in us.
struct QueueSamples {
  Samples<MixedMode> first, last, largest_gap;
};
struct SmallSamples {
  Samples<MixedMode> median, p99, most, calls;  // `calls` is a number
};

// Calls per second, by the number of threads that run them.
struct RateSamples {
  Samples<uint32_t> rate, client_cpu;
};

class Mixed {
 public:
  Mixed(const MixedOptions& options, Site site, std::unique_ptr<Partner> target)
      : options_(options),
        site_(std::move(site)),
        target_(std::move(target)),
        work_(BurnWork::of_us(options.long_us)),
        brief_work_(BurnWork::of_us(brief_us)) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Meanwhile poll() {
    return [this] {
      for (auto& clients : clients_) clients.poll();
      for (auto& clients : rate_clients_) clients.poll();
    };
  }
  Talk& talk() noexcept { return target_->talk(); }
  MixedClients& clients_of(MixedMode mode) { return clients_[static_cast<size_t>(mode)]; }
  MixedClients& rate_clients_of(MixedMode mode) { return rate_clients_[static_cast<size_t>(mode)]; }
  Status connect();
  Result<MixedClients> nodes(const std::string& target, ByteView code, const BurnWork& work) const;
  Result<MixedClients> am(const std::string& target, MixedMode mode, std::string& addresses) const;
  template <class Measure>
  Status while_target_serves(MixedMode mode, Measure measure);
  Status warm_up();
  Status queue(MixedMode mode);
  Status small_calls(MixedMode mode, uint32_t queue, SmallSamples& into);
  Status rate(MixedMode mode, uint32_t threads, size_t clients);
  Status rates_without_calls();
  Status one_run();
  void add_small_rows(Table& table, const char* title, const SmallSamples& samples) const;
  std::string rate_table() const;
  std::string table() const;
  Json json() const;

  const MixedOptions& options_;
  Site site_;
  std::unique_ptr<Partner> target_;
  const BurnWork work_, brief_work_;
  std::unique_ptr<RawMemory> flags_;
  std::array<MixedClients, mixed_modes.size()> clients_;
  std::array<MixedClients, rate_modes.size()> rate_clients_;
  QueueSamples queue_;
  SmallSamples beside_, alone_;
  RateSamples without_calls_;
  std::array<RateSamples, most_rate_clients> rates_;  // by the number of clients
  Progress progress_{"mixed"};
};

Result<MixedClients> Mixed::nodes(const std::string& target, ByteView code, const BurnWork& work) const {
  MixedClients clients;
  for (auto* const client : {&clients.first, &clients.second}) {
    TC_ASSIGN(auto made, NodeClient::create(site_.transport, code, work));
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
    TC_ASSIGN(auto made, AmClient::create(site_.transport.ucx_tls, number++,
                                          on_worker ? am_long_on_worker_id : am_long_in_handler_id, work_));
    TC_CHECK(made->connect(target));
    TC_ASSIGN(const auto address, made->address());
    addresses += address + " ";
    *client = std::move(made);
  }
  return clients;
}

Status Mixed::connect() {
  TC_ASSIGN(const auto line, talk().hear());
  std::string one, several, am_target, flags, addresses;
  read_words(line, one, several, am_target, flags);
  TC_ASSIGN(flags_, RawMemory::open(flags));
  for (const auto mode : {MixedMode::am, MixedMode::am_worker}) {
    TC_ASSIGN(clients_of(mode), am(am_target, mode, addresses));
  }
  TC_CHECK(talk().tell(addresses, "connected"));
  // The target polls while it waits for the next order.
  for (const auto& [mode, node] : {std::pair{MixedMode::ifunc, one}, std::pair{MixedMode::ifunc_threads, several}}) {
    TC_ASSIGN(clients_of(mode), nodes(node, burn_ifunc(), work_));
    TC_ASSIGN(rate_clients_of(mode), nodes(node, burn_briefly_ifunc(), brief_work_));
  }
  return {};
}

template <class Measure>
Status Mixed::while_target_serves(MixedMode mode, Measure measure) {
  TC_CHECK(talk().tell(fmt::format("serve {}", mode_name(mode)), "go", poll()));
  TC_CHECK(measure(clients_of(mode)));
  flags_->flags().send();
  return talk().expect("done", poll());
}

// Every way once, unmeasured: connections wire up lazily, code is loaded and compiled for this CPU.
Status Mixed::warm_up() {
  for (const auto mode : mixed_modes)
    TC_CHECK(while_target_serves(mode, [](MixedClients& clients) -> Status {
      TC_CHECK(measure_queue(*clients.first, warm_up_calls));
      TC_CHECK(measure_small_calls(clients, 1, warm_up_ms));
      return {};
    }));
  for (const auto mode : rate_modes)
    TC_CHECK(while_target_serves(mode, [&](MixedClients&) -> Status {
      auto& clients = rate_clients_of(mode);
      for (auto* const client : {&clients.first, &clients.second}) TC_CHECK(measure_queue(**client, warm_up_calls));
      return {};
    }));
  return talk().tell("tune", "tuned", poll());
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

Status Mixed::rate(MixedMode mode, uint32_t threads, size_t clients) {
  return while_target_serves(mode, [&](MixedClients&) -> Status {
    const std::array all{rate_clients_of(mode).first.get(), rate_clients_of(mode).second.get()};
    TC_ASSIGN(const auto rate, measure_rate(std::span(all).first(clients), window, options_.phase_ms));
    rates_[clients - 1].rate.add(threads, rate.calls_per_s);
    rates_[clients - 1].client_cpu.add(threads, rate.client_cpu);
    return {};
  });
}

// Meanwhile the target sleeps.
Status Mixed::rates_without_calls() {
  return while_target_serves(MixedMode::ifunc, [&](MixedClients&) -> Status {
    for (const auto threads : {1u, mixed_threads})
      without_calls_.rate.add(threads, rate_without_calls(brief_work_, threads, options_.phase_ms));
    return {};
  });
}

Status Mixed::one_run() {
  for (const auto mode : mixed_modes) TC_CHECK(small_calls(mode, 0, alone_));
  for (const auto mode : mixed_modes) TC_CHECK(queue(mode));
  for (const auto mode : mixed_modes) TC_CHECK(small_calls(mode, options_.calls, beside_));
  TC_CHECK(rates_without_calls());
  for (size_t clients = 1; clients <= most_rate_clients; ++clients) {
    TC_CHECK(rate(MixedMode::ifunc, 1, clients));
    TC_CHECK(rate(MixedMode::ifunc_threads, mixed_threads, clients));
  }
  return {};
}

Status Mixed::run() {
  TC_CHECK(connect());
  TC_CHECK(warm_up());
  for (int run = 0; run < options_.runs; ++run) {
    progress_.show(run, options_.runs, fmt::format("run {} of {}", run + 1, options_.runs));
    TC_CHECK(one_run());
  }
  return talk().say("end");
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
      "Long calls at one target, {}, UCX {}, {} interleaved runs, two processes on {} CPUs.\n"
      "The first client queues {} calls of {} us. Medians with quartiles; x AM is the median of the runs' own "
      "ratios.\n\n"
      "Answers to the first client, ms after it began to call\n",
      options_.transport, site_.machine.ucx, options_.runs, site_.machine.cores, options_.calls, options_.long_us);
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
  return queue.take() + small.take() + rate_table();
}

std::string Mixed::rate_table() const {
  Table table(fmt::format("\nThousand calls per second that compute for {} us each, {} in flight\n", brief_us, window),
              {{"", -20, 8},
               {"1 thread", 10},
               {"", 20},
               {"2 threads", 11},
               {"", 20},
               {"ratio", 8},
               {"", 16},
               {"client's CPU", 14}});
  const auto row = [&](const char* name, const RateSamples& samples) {
    std::vector<std::string> cells{name};
    for (const auto threads : {1u, mixed_threads}) {
      const auto rate = samples.rate.of(threads);
      cells.insert(cells.end(), {number(rate.median / 1000, "{:.2f}"), quartiles(rate, "{:.2f}", 1000)});
    }
    const auto ratio = samples.rate.ratio(mixed_threads, 1);
    cells.insert(cells.end(), {number(ratio.median, "{:.2f}"), quartiles(ratio, "{:.2f}")});
    if (samples.client_cpu.has(mixed_threads))
      cells.push_back(number(samples.client_cpu.of(mixed_threads).median * 100, "{:.0f} %"));
    table.row(cells);
  };
  row("without calls", without_calls_);
  row("one client", rates_[0]);
  row("two clients", rates_[1]);
  return table.take();
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

Json json_of(const RateSamples& samples) {
  Json object;
  put(object, "one_thread_calls_per_s", samples.rate.of(1));
  put(object, "two_threads_calls_per_s", samples.rate.of(mixed_threads));
  put(object, "ratio", samples.rate.ratio(mixed_threads, 1));
  if (samples.client_cpu.has(mixed_threads)) put(object, "client_cpu", samples.client_cpu.of(mixed_threads));
  return object;
}

Json Mixed::json() const {
  auto root = json_head("mixed", options_.transport, site_.machine, options_.runs);
  put_machine(root, site_.machine);
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
  root["rate"] = {{"compute_us", brief_us},
                  {"window", window},
                  {"without_calls", json_of(without_calls_)},
                  {"one_client", json_of(rates_[0])},
                  {"two_clients", json_of(rates_[1])}};
  return root;
}

}  // namespace

Result<Report> run_mixed(const MixedOptions& options) {
  if (const auto queue_ms = uint64_t{options.calls} * options.long_us / 1000; queue_ms > most_queue_ms)
    return fail(TC_ERR_INVALID, "the queue takes {} ms when it may take {}", queue_ms, most_queue_ms);
  if (usable_cpus() < 2) return fail(TC_ERR_UNSUPPORTED, "this benchmark needs two CPUs and may use {}", usable_cpus());
  TC_ASSIGN(auto site, Site::prepare(options.transport, true, 1));
  TC_ASSIGN(auto target, Partner::start("mixed-target", {{"transport", options.transport}}));
  Mixed mixed(options, std::move(site), std::move(target));
  TC_CHECK(mixed.run());
  return mixed.report();
}

}  // namespace tc::bench
