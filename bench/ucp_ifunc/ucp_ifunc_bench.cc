// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/ucp_ifunc_bench.h"

#include <algorithm>
#include <array>

#include "ucp_ifunc/side.h"

namespace tc::bench {

namespace {

constexpr std::array<std::string_view, 3> way_names{"am", "ifunc", "send_receive"};
std::string_view name_of(Way way) noexcept { return way_names[static_cast<size_t>(way)]; }

// One payload size.
struct Row {
  size_t payload;
  Samples<Way> latency_ns, rate;
};

class Bench {
 public:
  Bench(const UcpIfuncOptions& options, Pair pair) : options_(options), pair_(std::move(pair)) {}

  Status run() {
    TC_ASSIGN(side_, Side::create(options_));
    TC_ASSIGN(const auto theirs, pair_.talk().hear(progress()));
    TC_ASSIGN(const auto ours, side_->contact());
    TC_CHECK(side_->connect(theirs));
    TC_CHECK(pair_.talk().say(ours));
    TC_CHECK(side_->warm_up());
    TC_CHECK(pair_.talk().expect("warm", progress()));
    for (size_t payload = 1; payload <= options_.largest; payload *= payload < 1024 ? 4 : 2)
      rows_.push_back({payload, {}, {}});
    for (int run = 0; run < options_.runs; ++run)
      for (auto& row : rows_) TC_CHECK(measure(row));
    return pair_.talk().say("end");
  }
  Report report() const { return {table(), json()}; }

 private:
  Meanwhile progress() {
    return [this] { side_->progress(); };
  }

  Status measure(Row& row) {
    const bool tcp = pair_.transport.by_network;
    TC_CHECK(side_->use(row.payload));
    const uint64_t bytes_wanted = tcp ? 8u << 20 : 64u << 20;  // some ten milliseconds for each figure
    const auto rounds = std::clamp<uint64_t>(bytes_wanted / (row.payload + 1000), 20, tcp ? 1000 : 20'000);
    const auto slots = side_->ring_slots();
    const auto messages = std::max<uint64_t>(2, rounds * (tcp ? 1 : 8) / slots) * slots;
    for (const auto way : {Way::am, Way::ifunc, Way::send_receive}) {
      const auto order = [&](const char* verb, uint64_t number) {
        return fmt::format("{} {} {} {}", verb, name_of(way), row.payload, number);
      };
      TC_ASSIGN(const auto ns,
                pair_.measure(order("latency", rounds), progress(), [&] { return side_->ping(way, rounds); }));
      TC_ASSIGN(const auto rate,
                pair_.measure(order("rate", messages), progress(), [&] { return side_->send_stream(way, messages); }));
      row.latency_ns.add(way, ns);
      row.rate.add(way, rate);
    }
    return {};
  }

  Json json() const {
    Json root;
    root["bench"] = "ucp-ifunc";
    root["transport"] = options_.transport;
    root["memory"] = options_.memory;
    root["payload_read"] = options_.read;
    root["ucx"] = pair_.machine.ucx;
    root["runs"] = options_.runs;
    put_machine(root, pair_.machine);
    root["sizes"] = Json::array();
    for (const auto& row : rows_) {
      auto& size = root["sizes"].emplace_back();
      size["payload_bytes"] = row.payload;
      put(size, "am_latency_ns", row.latency_ns.of(Way::am));
      put(size, "am_rate_msgs_per_s", row.rate.of(Way::am));
      for (const auto& [way, prefix] : {std::pair{Way::ifunc, ""}, std::pair{Way::send_receive, "send_receive_"}}) {
        put(size, fmt::format("{}_latency_ns", name_of(way)), row.latency_ns.of(way));
        put(size, fmt::format("{}latency_ratio_to_am", prefix), row.latency_ns.ratio(way, Way::am));
        put(size, fmt::format("{}_rate_msgs_per_s", name_of(way)), row.rate.of(way));
        put(size, fmt::format("{}rate_ratio_to_am", prefix), row.rate.ratio(way, Way::am));
      }
    }
    return root;
  }

  std::string table() const {
    const auto introduction = fmt::format(
        "The papers' API beside UCX Active Messages, {}, slots in {} memory, payload {}, UCX {}, {} runs, two pinned "
        "processes.\nMedians; x AM is the median of the runs' own ratios, with quartiles. Send-receive: "
        "ucp_ifunc_am_send_nbx().\n\n",
        options_.transport, options_.memory, options_.read ? "read" : "not read", pair_.machine.ucx, options_.runs);
    Table table(introduction, {{"payload", 9},
                               {"AM", 11},
                               {"slots", 11},
                               {"slots", 22},
                               {"send-receive", 22},
                               {"AM", 11},
                               {"slots", 11},
                               {"slots", 22},
                               {"send-receive", 22}});
    table.row({"bytes", "us", "us", "x AM", "x AM", "k/s", "k/s", "x AM", "x AM"});
    for (const auto& row : rows_) {
      std::vector<std::string> cells{std::to_string(row.payload)};
      const auto add = [&](const Samples<Way>& samples, const char* format) {
        for (const auto way : {Way::am, Way::ifunc}) cells.push_back(number(samples.of(way).median / 1000, format));
        for (const auto way : {Way::ifunc, Way::send_receive})
          cells.push_back(with_quartiles(samples.ratio(way, Way::am), "{:.2f}"));
      };
      add(row.latency_ns, "{:.3f}");
      add(row.rate, "{:.1f}");
      table.row(cells);
    }
    return table.take();
  }

  const UcpIfuncOptions& options_;
  Pair pair_;
  std::unique_ptr<Side> side_;
  std::vector<Row> rows_;
};

}  // namespace

Result<Report> run_ucp_ifunc(const UcpIfuncOptions& options) {
  TC_ASSIGN(auto pair, Pair::start("ucp-ifunc-target", options.transport,
                                   {{"memory", options.memory},
                                    {"largest", std::to_string(options.largest)},
                                    {"read", options.read ? "1" : "0"}}));
  Bench bench(options, std::move(pair));
  TC_CHECK(bench.run());
  return bench.report();
}

Status serve_ucp_ifunc(const Arguments& arguments, Talk& talk) {
  pin_to(1);
  UcpIfuncOptions options;
  options.transport = arguments.at("transport");
  options.memory = arguments.at("memory");
  options.largest = number_in(arguments, "largest");
  options.read = number_in(arguments, "read") != 0;
  TC_ASSIGN(const auto side, Side::create(options));
  const auto meanwhile = [&] { side->progress(); };
  TC_ASSIGN(const auto ours, side->contact());
  TC_ASSIGN(const auto theirs, talk.ask(ours, meanwhile));
  TC_CHECK(side->connect(theirs));
  TC_CHECK(side->warm_up());
  TC_CHECK(talk.say("warm"));
  const auto obey = [&](const std::string& order) -> Result<std::string> {
    std::string verb, way_name;
    size_t payload = 0;
    uint64_t number = 0;
    read_words(order, verb, way_name, payload, number);
    TC_ASSIGN(const auto way, value_named<Way>(way_names, way_name));
    TC_CHECK(side->use(payload));
    TC_CHECK(talk.say("go"));
    TC_CHECK(verb == "latency" ? side->pong(way, number) : side->take_stream(way, number));
    return "done";
  };
  return talk.serve(obey, meanwhile);
}

}  // namespace tc::bench
