// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "common/json.h"
#include "tsi/tsi.h"

namespace tc::bench {

namespace {

using nlohmann::ordered_json;

const Summary& at(const std::map<Mode, Summary>& values, Mode mode) {
  static const Summary nothing;
  const auto found = values.find(mode);
  return found != values.end() ? found->second : nothing;
}

ordered_json uncached(const TsiResult& r, Mode mode) {
  ordered_json object;
  object["frame_bytes"] = r.frame_bytes.at(mode);
  put(object, "latency_ns", at(r.latency_ns, mode));
  put(object, "rate_msgs_per_s", at(r.rate, mode));
  put(object, "first_execution_us", at(r.first_execution_us, mode));
  put(object, "load_us", at(r.load_us, mode));
  return object;
}

// One column of the papers' Tables I-III.
struct Column {
  const char* name;
  double lookup_us;
  double jit_us;  // negative: none
  double total_us;
};

void breakdown(std::string& out, const TsiResult& r) {
  const double cached_us = r.cached_dispatch_ns / 1000;
  const Column columns[] = {
      {"Active Message", r.am_dispatch_ns / 1000, -1, at(r.latency_ns, Mode::am).median / 1000},
      {"Uncached object", cached_us, at(r.load_us, Mode::uncached_object).median,
       at(r.latency_ns, Mode::uncached_object).median / 1000},
      {"Uncached bitcode", cached_us, at(r.load_us, Mode::uncached_bitcode).median,
       at(r.latency_ns, Mode::uncached_bitcode).median / 1000},
      {"Cached ifunc", cached_us, -1, at(r.latency_ns, Mode::cached).median / 1000},
  };
  auto to = std::back_inserter(out);
  fmt::format_to(to, "\n{:<18}", "Stage (us)");
  for (const auto& c : columns) fmt::format_to(to, "{:>18}", c.name);
  fmt::format_to(to, "\n{:<18}", "Lookup+Exec");
  for (const auto& c : columns) fmt::format_to(to, "{:>18.4f}", c.lookup_us);
  fmt::format_to(to, "\n{:<18}", "JIT or link");
  for (const auto& c : columns)
    c.jit_us < 0 ? fmt::format_to(to, "{:>18}", "-") : fmt::format_to(to, "{:>18}", fmt::format("({:.2f})", c.jit_us));
  fmt::format_to(to, "\n{:<18}", "Transmission");
  for (const auto& c : columns) fmt::format_to(to, "{:>18.4f}", c.total_us - c.lookup_us);
  fmt::format_to(to, "\n{:<18}", "Total");
  for (const auto& c : columns) fmt::format_to(to, "{:>18.4f}", c.total_us);
  out += "\n(JIT or link is paid once per code and, as in the paper, not part of the total.)\n";
}

// A figure, its quartiles and its ratios: 12, 20, 7 and 7 places.
std::string cells(const Summary& value, double unit, const char* number, const Summary& to_am, const Summary& to_raw) {
  if (value.median <= 0) return fmt::format("{:>12}{:>20}{:>7}{:>7}", "-", "-", "-", "-");
  const auto text = [&](double of) { return fmt::format(fmt::runtime(number), of / unit); };
  return fmt::format("{:>12}{:>20}{:>7}{:>7}", text(value.median),
                     fmt::format("[{}, {}]", text(value.low), text(value.high)), fmt::format("{:.2f}", to_am.median),
                     fmt::format("{:.2f}", to_raw.median));
}

void row(std::string& out, const char* name, const TsiResult& r, Mode mode) {
  const auto frame = r.frame_bytes.find(mode);
  fmt::format_to(
      std::back_inserter(out), "{:<20}{:>6}{}{}\n", name,
      frame != r.frame_bytes.end() ? fmt::format("{}", frame->second) : "-",
      cells(at(r.latency_ns, mode), 1, "{:.1f}", at(r.latency_ratio_to_am, mode), at(r.latency_ratio_to_raw, mode)),
      cells(at(r.rate, mode), 1e6, "{:.3f}", at(r.rate_ratio_to_am, mode), at(r.rate_ratio_to_raw, mode)));
}

}  // namespace

std::string format_table(const TsiResult& r) {
  std::string out = fmt::format(
      "Target-side increment, 1-byte payload, {}, UCX {}, {} interleaved runs, two pinned processes.\n"
      "{}.\n"
      "Medians with quartiles; x AM and x raw are medians of the runs' own ratios.\n\n"
      "{:<20}{:>6}{:>12}{:>20}{:>7}{:>7}{:>12}{:>20}{:>7}{:>7}\n",
      r.options.transport, r.ucx_version, r.options.runs, format_placement(r.placement), "", "bytes", "latency ns", "",
      "x AM", "x raw", "M msg/s", "", "x AM", "x raw");
  row(out, "Two raw flags", r, Mode::raw_flags);
  row(out, r.by_network ? "Raw socket" : "Raw ring", r, Mode::raw);
  row(out, "Active Message", r, Mode::am);
  row(out, "  64 in a message", r, Mode::am_batched);
  row(out, "Cached ifunc", r, Mode::cached);
  row(out, "  64 in a call", r, Mode::cached_batched);
  row(out, "Uncached object", r, Mode::uncached_object);
  row(out, "Uncached bitcode", r, Mode::uncached_bitcode);
  const auto& object = at(r.first_execution_us, Mode::uncached_object);
  const auto& bitcode = at(r.first_execution_us, Mode::uncached_bitcode);
  fmt::format_to(std::back_inserter(out),
                 "\nNever-seen code, last byte received to end of first execution: object {:.2f} us [{:.2f}, {:.2f}], "
                 "bitcode {:.1f} us [{:.1f}, {:.1f}]\n",
                 object.median, object.low, object.high, bitcode.median, bitcode.low, bitcode.high);
  const auto& ten = r.ten_symbols.all_us;
  fmt::format_to(std::back_inserter(out),
                 "The same for an object with ten external symbols: {:.2f} us [{:.2f}, {:.2f}]\n", ten.median, ten.low,
                 ten.high);
  breakdown(out, r);
  return out;
}

std::string format_json(const TsiResult& r) {
  ordered_json root;
  root["bench"] = "tsi";
  root["transport"] = r.options.transport;
  root["ucx"] = r.ucx_version;
  root["runs"] = r.options.runs;
  put_machine(root, r.machine);
  put_placement(root, r.placement);
  auto& raw = root["raw"];
  put(raw, "latency_ns", at(r.latency_ns, r.latency_floor()));
  put(raw, "rate_msgs_per_s", at(r.rate, Mode::raw));
  if (!r.by_network) put(raw, "ring_latency_ns", at(r.latency_ns, Mode::raw));
  auto& am = root["am"];
  am["frame_bytes"] = r.frame_bytes.at(Mode::am);
  put(am, "latency_ns", at(r.latency_ns, Mode::am));
  put(am, "rate_msgs_per_s", at(r.rate, Mode::am));
  put(am, "batched64_rate_msgs_per_s", at(r.rate, Mode::am_batched));
  am["lookup_execution_ns"] = r.am_dispatch_ns;
  auto& cached = root["cached"];
  cached["frame_bytes"] = r.frame_bytes.at(Mode::cached);
  put(cached, "latency_ns", at(r.latency_ns, Mode::cached));
  put(cached, "rate_msgs_per_s", at(r.rate, Mode::cached_batched));
  put(cached, "single_rate_msgs_per_s", at(r.rate, Mode::cached));
  put(cached, "latency_ratio_to_am", at(r.latency_ratio_to_am, Mode::cached));
  put(cached, "rate_ratio_to_am", at(r.rate_ratio_to_am, Mode::cached_batched));
  put(cached, "single_rate_ratio_to_am", at(r.rate_ratio_to_am, Mode::cached));
  put(cached, "latency_ratio_to_raw", at(r.latency_ratio_to_raw, Mode::cached));
  put(cached, "rate_ratio_to_raw", at(r.rate_ratio_to_raw, Mode::cached_batched));
  put(cached, "single_rate_ratio_to_raw", at(r.rate_ratio_to_raw, Mode::cached));
  cached["lookup_execution_ns"] = r.cached_dispatch_ns;
  root["uncached_object"] = uncached(r, Mode::uncached_object);
  root["uncached_bitcode"] = uncached(r, Mode::uncached_bitcode);
  auto& ten = root["uncached_object_ten_symbols"];
  put(ten, "first_execution_us", r.ten_symbols.all_us);
  put(ten, "load_us", r.ten_symbols.load_us);
  return root.dump(2) + "\n";
}

}  // namespace tc::bench
