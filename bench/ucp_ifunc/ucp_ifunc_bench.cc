// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/ucp_ifunc_bench.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

#include "common/pinning.h"
#include "common/report.h"
#include "common/talk.h"
#include "ucp_ifunc/side.h"

namespace tc::bench {

namespace {

constexpr uint64_t talk_ms = 120'000;

constexpr std::array<const char*, 3> way_names{"am", "ifunc", "send_receive"};
const char* name_of(Way way) noexcept { return way_names[static_cast<size_t>(way)]; }
Result<Way> way_of(const std::string& name) {
  for (const auto way : {Way::am, Way::ifunc, Way::send_receive})
    if (name == name_of(way)) return way;
  return fail(TC_ERR_INVALID, "'{}' is no way to send", name);
}

// The values of one payload size over the runs.
struct Samples {
  std::vector<double> am_latency, am_rate;
  struct OfWay {
    std::vector<double> latency, latency_ratio, rate, rate_ratio;
    UcpIfuncWay summary() const {
      return {summarize(latency), summarize(latency_ratio), summarize(rate), summarize(rate_ratio)};
    }
  } slots, send_receive;

  UcpIfuncRow row(size_t payload) const {
    return {payload, summarize(am_latency), summarize(am_rate), slots.summary(), send_receive.summary()};
  }
};

class Bench {
 public:
  explicit Bench(const UcpIfuncOptions& options) { result_.options = options; }

  Status run() {
    TC_CHECK(start());
    std::vector<size_t> payloads;
    for (size_t payload = 1; payload <= result_.options.largest; payload *= payload < 1024 ? 4 : 2)
      payloads.push_back(payload);
    std::vector<Samples> samples(payloads.size());
    for (int run = 0; run < result_.options.runs; ++run)
      for (size_t i = 0; i < payloads.size(); ++i) TC_CHECK(measure(payloads[i], samples[i]));
    for (size_t i = 0; i < payloads.size(); ++i) result_.rows.push_back(samples[i].row(payloads[i]));
    return partner_->talk().say("end");
  }
  UcpIfuncResult take() { return std::move(result_); }

 private:
  bool tcp() const noexcept { return result_.options.transport == "tcp"; }

  Status start() {
    const auto& options = result_.options;
    if (usable_cpus() < 2)
      return fail(TC_ERR_UNSUPPORTED, "this benchmark needs two CPUs and may use {}", usable_cpus());
    if (tcp()) ::setenv("UCX_NET_DEVICES", "lo", 0);
    result_.ucx_version = ucp_get_version_string();
    result_.machine = describe_machine(result_.ucx_version);
    std::vector<std::string> arguments{
        "bench",    "ucp-ifunc-target", "--transport", options.transport,
        "--memory", options.memory,     "--largest",   fmt::format("{}", options.largest)};
    if (options.read) arguments.emplace_back("--read");
    TC_ASSIGN(partner_, Partner::start(arguments));
    pin_to(0);
    TC_ASSIGN(side_, Side::create(options));
    TC_ASSIGN(const auto theirs, hear());
    TC_ASSIGN(const auto ours, side_->address());
    TC_CHECK(side_->connect(theirs));
    TC_CHECK(partner_->talk().say(ours));
    TC_CHECK(side_->warm_up());
    return expect("warm");
  }

  Result<std::string> hear() {
    return partner_->talk().hear(Deadline::after_ms(talk_ms), [this] {
      if (side_) side_->progress();
    });
  }
  Status expect(const char* word) {
    TC_ASSIGN(const auto line, hear());
    return line == word ? Status{} : fail(TC_ERR_INTERNAL, "the target said '{}' when '{}' was due", line, word);
  }

  Status measure(size_t payload, Samples& into) {
    TC_CHECK(side_->use(payload));
    const uint64_t bytes_wanted = tcp() ? 8u << 20 : 64u << 20;  // some ten milliseconds for each figure
    const auto rounds = std::clamp<uint64_t>(bytes_wanted / (payload + 1000), 20, tcp() ? 1000 : 20'000);
    const auto slots = side_->ring_slots();
    const auto messages = std::max<uint64_t>(2, rounds * (tcp() ? 1 : 8) / slots) * slots;
    double am = 0;
    TC_CHECK(latency(Way::am, payload, rounds, am));
    into.am_latency.push_back(am);
    TC_CHECK(rate(Way::am, payload, messages, into.am_rate.emplace_back()));
    for (const auto way : {Way::ifunc, Way::send_receive}) {
      auto& of_way = way == Way::ifunc ? into.slots : into.send_receive;
      TC_CHECK(latency(way, payload, rounds, of_way.latency.emplace_back()));
      TC_CHECK(rate(way, payload, messages, of_way.rate.emplace_back()));
      of_way.latency_ratio.push_back(of_way.latency.back() / am);
      of_way.rate_ratio.push_back(of_way.rate.back() / into.am_rate.back());
    }
    return {};
  }
  Status order(const char* verb, Way way, size_t payload, uint64_t number) {
    TC_CHECK(partner_->talk().say(fmt::format("{} {} {} {}", verb, name_of(way), payload, number)));
    return expect("go");
  }
  Status latency(Way way, size_t payload, uint64_t rounds, double& ns) {
    TC_CHECK(order("latency", way, payload, rounds));
    TC_ASSIGN(ns, side_->ping(way, rounds));
    return expect("done");
  }
  Status rate(Way way, size_t payload, uint64_t messages, double& per_second) {
    TC_CHECK(order("rate", way, payload, messages));
    TC_ASSIGN(per_second, side_->send_stream(way, messages));
    return expect("done");
  }

  UcpIfuncResult result_;
  std::unique_ptr<Partner> partner_;
  std::unique_ptr<Side> side_;
};

Status serve(const UcpIfuncOptions& options, Talk& talk) {
  pin_to(1);
  TC_ASSIGN(const auto side, Side::create(options));
  const auto meanwhile = [&] { side->progress(); };
  TC_ASSIGN(const auto ours, side->address());
  TC_CHECK(talk.say(ours));
  TC_ASSIGN(const auto theirs, talk.hear(Deadline::after_ms(talk_ms), meanwhile));
  TC_CHECK(side->connect(theirs));
  TC_CHECK(side->warm_up());
  TC_CHECK(talk.say("warm"));
  while (true) {
    TC_ASSIGN(const auto line, talk.hear(Deadline::after_ms(600'000), meanwhile));
    if (line == "end") return {};
    std::string verb, way_name;
    size_t payload = 0;
    uint64_t number = 0;
    std::istringstream(line) >> verb >> way_name >> payload >> number;
    TC_ASSIGN(const auto way, way_of(way_name));
    TC_CHECK(side->use(payload));
    TC_CHECK(talk.say("go"));
    const auto done = verb == "latency" ? side->pong(way, number) : side->take_stream(way, number);
    TC_CHECK(talk.say(done ? "done" : "error " + done.error().message));
  }
}

std::string json(const UcpIfuncResult& r) {
  Json root;
  root["bench"] = "ucp-ifunc";
  root["transport"] = r.options.transport;
  root["memory"] = r.options.memory;
  root["payload_read"] = r.options.read;
  root["ucx"] = r.ucx_version;
  root["runs"] = r.options.runs;
  put_machine(root, r.machine);
  root["sizes"] = Json::array();
  for (const auto& row : r.rows) {
    Json size;
    size["payload_bytes"] = row.payload;
    put(size, "am_latency_ns", row.am_latency_ns);
    put(size, "am_rate_msgs_per_s", row.am_rate);
    put(size, "ifunc_latency_ns", row.slots.latency_ns);
    put(size, "latency_ratio_to_am", row.slots.latency_ratio);
    put(size, "ifunc_rate_msgs_per_s", row.slots.rate);
    put(size, "rate_ratio_to_am", row.slots.rate_ratio);
    put(size, "send_receive_latency_ns", row.send_receive.latency_ns);
    put(size, "send_receive_latency_ratio_to_am", row.send_receive.latency_ratio);
    put(size, "send_receive_rate_msgs_per_s", row.send_receive.rate);
    put(size, "send_receive_rate_ratio_to_am", row.send_receive.rate_ratio);
    root["sizes"].push_back(std::move(size));
  }
  return text_of(root);
}

std::string table(const UcpIfuncResult& r) {
  const auto introduction = fmt::format(
      "The papers' API beside UCX Active Messages, {}, slots in {} memory, payload {}, UCX {}, {} runs, two pinned "
      "processes.\nMedians; x AM is the median of the runs' own ratios, with quartiles. Send-receive: "
      "ucp_ifunc_am_send_nbx().\n\n",
      r.options.transport, r.options.memory, r.options.read ? "read" : "not read", r.ucx_version, r.options.runs);
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
  constexpr auto ratio = "{:.2f}";
  for (const auto& row : r.rows)
    table.row({std::to_string(row.payload), number(row.am_latency_ns.median / 1000, "{:.3f}"),
               number(row.slots.latency_ns.median / 1000, "{:.3f}"), with_quartiles(row.slots.latency_ratio, ratio),
               with_quartiles(row.send_receive.latency_ratio, ratio), number(row.am_rate.median / 1000, "{:.1f}"),
               number(row.slots.rate.median / 1000, "{:.1f}"), with_quartiles(row.slots.rate_ratio, ratio),
               with_quartiles(row.send_receive.rate_ratio, ratio)});
  return table.take();
}

}  // namespace

Result<UcpIfuncResult> run_ucp_ifunc(const UcpIfuncOptions& options) {
  Bench bench(options);
  TC_CHECK(bench.run());
  return bench.take();
}

int run_ucp_ifunc_target(const UcpIfuncOptions& options) {
  return run_as_partner([&](Talk& talk) { return serve(options, talk); });
}

std::string format_ucp_ifunc(const UcpIfuncResult& result) {
  return result.options.json ? json(result) : table(result);
}

}  // namespace tc::bench
