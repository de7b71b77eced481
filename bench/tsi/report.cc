// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <fmt/format.h>

#include "tsi/tsi.h"

namespace tc::bench {

namespace {

const Summary& at(const std::map<Mode, Summary>& values, Mode mode) {
  static const Summary nothing;
  const auto found = values.find(mode);
  return found != values.end() ? found->second : nothing;
}

Json uncached(const TsiResult& r, Mode mode) {
  Json object;
  object["frame_bytes"] = r.frame_bytes.at(mode);
  put(object, "latency_ns", at(r.latency_ns, mode));
  put(object, "rate_msgs_per_s", at(r.rate, mode));
  put(object, "first_execution_us", at(r.first_execution_us, mode));
  put(object, "load_us", at(r.load_us, mode));
  return object;
}

// Encrypted calls beside plain ones.
void put_plain(Json& root, const TsiResult& r) {
  auto& plain = root["plain"];
  put(plain, "latency_ns", at(r.latency_ns, Mode::plain));
  put(plain, "rate_msgs_per_s", at(r.rate, Mode::plain_batched));
  put(plain, "single_rate_msgs_per_s", at(r.rate, Mode::plain));
  auto& cached = root["cached"];
  put(cached, "latency_ratio_to_plain", at(r.latency_ratio_to_plain, Mode::cached));
  put(cached, "rate_ratio_to_plain", at(r.rate_ratio_to_plain, Mode::cached_batched));
  put(cached, "single_rate_ratio_to_plain", at(r.rate_ratio_to_plain, Mode::cached));
}

// One column of the breakdown.
struct Stages {
  double lookup_us;
  double jit_us;  // negative: none
  double total_us;
};

// The papers' Tables I-III.
std::string breakdown(const TsiResult& r) {
  const double cached_us = r.cached_dispatch_ns / 1000;
  const Stages columns[] = {
      {r.am_dispatch_ns / 1000, -1, at(r.latency_ns, Mode::am).median / 1000},
      {cached_us, at(r.load_us, Mode::uncached_object).median, at(r.latency_ns, Mode::uncached_object).median / 1000},
      {cached_us, at(r.load_us, Mode::uncached_bitcode).median, at(r.latency_ns, Mode::uncached_bitcode).median / 1000},
      {cached_us, -1, at(r.latency_ns, Mode::cached).median / 1000},
  };
  Table table("\n", {{"Stage (us)", -18},
                     {"Active Message", 18},
                     {"Uncached object", 18},
                     {"Uncached bitcode", 18},
                     {"Cached ifunc", 18}});
  const auto row = [&](const char* stage, const auto& cell) {
    std::vector<std::string> cells{stage};
    for (const auto& column : columns) cells.push_back(cell(column));
    table.row(cells);
  };
  constexpr auto us = "{:.4f}";
  row("Lookup+Exec", [](const Stages& c) { return number(c.lookup_us, us); });
  row("JIT or link", [](const Stages& c) { return c.jit_us < 0 ? "-" : number(c.jit_us, "({:.2f})"); });
  row("Transmission", [](const Stages& c) { return number(c.total_us - c.lookup_us, us); });
  row("Total", [](const Stages& c) { return number(c.total_us, us); });
  table.text("(JIT or link is paid once per code and, as in the paper, not part of the total.)\n");
  return table.take();
}

// Adds a figure, its quartiles and its ratios to a row.
void add_cells(std::vector<std::string>& row, const Summary& value, double unit, const char* format,
               const Summary& to_am, const Summary& to_raw) {
  if (value.median <= 0) {
    row.insert(row.end(), 4, "-");
    return;
  }
  row.insert(row.end(), {number(value.median / unit, format), quartiles(value, format, unit),
                         number(to_am.median, "{:.2f}"), number(to_raw.median, "{:.2f}")});
}

void add_row(Table& table, const char* name, const TsiResult& r, Mode mode) {
  const auto frame = r.frame_bytes.find(mode);
  std::vector<std::string> row{name, frame != r.frame_bytes.end() ? std::to_string(frame->second) : "-"};
  add_cells(row, at(r.latency_ns, mode), 1, "{:.1f}", at(r.latency_ratio_to_am, mode),
            at(r.latency_ratio_to_raw, mode));
  add_cells(row, at(r.rate, mode), 1e6, "{:.3f}", at(r.rate_ratio_to_am, mode), at(r.rate_ratio_to_raw, mode));
  table.row(row);
}

}  // namespace

std::string format_table(const TsiResult& r) {
  const auto introduction = fmt::format(
      "Target-side increment, 1-byte payload, {}, UCX {}, {} interleaved runs, two pinned processes.\n"
      "{}.\n"
      "Medians with quartiles; x AM and x raw are medians of the runs' own ratios.\n\n",
      r.options.transport, r.ucx_version, r.options.runs, format_placement(r.placement));
  Table table(introduction, {{"", -20},
                             {"bytes", 6},
                             {"latency ns", 12},
                             {"", 20},
                             {"x AM", 7},
                             {"x raw", 7},
                             {"M msg/s", 12},
                             {"", 20},
                             {"x AM", 7},
                             {"x raw", 7}});
  add_row(table, "Two raw flags", r, Mode::raw_flags);
  add_row(table, r.by_network ? "Raw socket" : "Raw ring", r, Mode::raw);
  add_row(table, "Active Message", r, Mode::am);
  add_row(table, "  64 in a message", r, Mode::am_batched);
  const bool encrypted = !r.latency_ratio_to_plain.empty();
  if (encrypted) {
    add_row(table, "Cached, plain TCP", r, Mode::plain);
    add_row(table, "  64 in a call", r, Mode::plain_batched);
  }
  add_row(table, "Cached ifunc", r, Mode::cached);
  add_row(table, "  64 in a call", r, Mode::cached_batched);
  add_row(table, "Uncached object", r, Mode::uncached_object);
  add_row(table, "Uncached bitcode", r, Mode::uncached_bitcode);
  if (encrypted)
    table.text(fmt::format("\nEncrypted, x plain TCP of the same run: latency {}, rate {}, 64 in a call {}\n",
                           with_quartiles(at(r.latency_ratio_to_plain, Mode::cached), "{:.2f}"),
                           with_quartiles(at(r.rate_ratio_to_plain, Mode::cached), "{:.2f}"),
                           with_quartiles(at(r.rate_ratio_to_plain, Mode::cached_batched), "{:.2f}")));
  const auto& object = at(r.first_execution_us, Mode::uncached_object);
  const auto& bitcode = at(r.first_execution_us, Mode::uncached_bitcode);
  const auto& ten = r.ten_symbols.all_us;
  table.text(fmt::format(
      "\nNever-seen code, last byte received to end of first execution: object {:.2f} us {}, bitcode {:.1f} us {}\n"
      "The same for an object with ten external symbols: {:.2f} us {}\n",
      object.median, quartiles(object, "{:.2f}"), bitcode.median, quartiles(bitcode, "{:.1f}"), ten.median,
      quartiles(ten, "{:.2f}")));
  table.text(breakdown(r));
  return table.take();
}

std::string format_json(const TsiResult& r) {
  Json root;
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
  if (!r.latency_ratio_to_plain.empty()) put_plain(root, r);
  root["uncached_object"] = uncached(r, Mode::uncached_object);
  root["uncached_bitcode"] = uncached(r, Mode::uncached_bitcode);
  auto& ten = root["uncached_object_ten_symbols"];
  put(ten, "first_execution_us", r.ten_symbols.all_us);
  put(ten, "load_us", r.ten_symbols.load_us);
  return text_of(root);
}

}  // namespace tc::bench
