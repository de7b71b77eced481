// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <fmt/format.h>

#include <array>

#include "bulk/bulk.h"

namespace tc::bench {

namespace {

struct Way {
  BulkMode mode;
  const char* title;
  const char* key;
};
constexpr std::array ways{Way{BulkMode::copy, "memcpy", "memcpy"},
                          Way{BulkMode::raw, "Raw stream", "raw"},
                          Way{BulkMode::am, "Active Message", "am"},
                          Way{BulkMode::call, "Call", "call"},
                          Way{BulkMode::reply, "Reply", "reply"},
                          Way{BulkMode::aes, "AES-128-GCM", "aes"},
                          Way{BulkMode::plain_call, "Call, plain", "plain_call"},
                          Way{BulkMode::plain_reply, "Reply, plain", "plain_reply"}};

std::string size_text(uint64_t bytes) {
  if (bytes % (1u << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  return bytes % (1u << 10) == 0 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

std::string ratio_text(const std::map<BulkMode, Summary>& ratios, BulkMode mode) {
  const auto found = ratios.find(mode);
  return found != ratios.end() ? fmt::format("{:.2f}", found->second.median) : "-";
}

Json as_json(const BulkPoint& point, bool by_network) {
  Json object;
  object["bytes"] = point.bytes;
  object["rounds"] = point.rounds;
  for (const auto& way : ways)
    if (point.rate.contains(way.mode)) put(object, fmt::format("{}_gb_per_s", way.key), point.rate.at(way.mode));
  for (const auto& [mode, key] : {std::pair{BulkMode::call, "call"}, std::pair{BulkMode::reply, "reply"}}) {
    put(object, fmt::format("{}_ratio_to_memcpy", key), point.to_memcpy.at(mode));
    put(object, fmt::format("{}_ratio_to_am", key), point.to_am.at(mode));
    if (by_network) put(object, fmt::format("{}_ratio_to_raw", key), point.to_raw.at(mode));
    if (!point.to_plain.empty()) put(object, fmt::format("{}_ratio_to_plain", key), point.to_plain.at(mode));
  }
  return object;
}

}  // namespace

std::string format_table(const BulkResult& r) {
  const auto introduction = fmt::format(
      "Large payloads, {}, UCX {}, {} interleaved runs, two pinned processes.\n"
      "{}.\n"
      "GB (10^9 bytes) per second, each message answered before the next: medians with quartiles; ratios are medians "
      "of the runs' own ratios.\n\n",
      r.options.transport, r.machine.ucx, r.options.runs, format_placement(r.placement));
  Table table(
      introduction,
      {{"", 9}, {"", -16, 2}, {"GB/s", 9}, {"", 20}, {"x memcpy", 10}, {"x AM", 8}, {"x raw", 8}, {"x plain", 9}});
  for (const auto& point : r.points)
    for (const auto& way : ways) {
      const auto found = point.rate.find(way.mode);
      if (found == point.rate.end()) continue;
      const auto& rate = found->second;
      table.row({way.mode == ways.front().mode ? size_text(point.bytes) : "", way.title, number(rate.median, "{:.2f}"),
                 quartiles(rate, "{:.2f}"), ratio_text(point.to_memcpy, way.mode), ratio_text(point.to_am, way.mode),
                 ratio_text(point.to_raw, way.mode), ratio_text(point.to_plain, way.mode)});
    }
  return table.take();
}

std::string format_json(const BulkResult& r) {
  Json root;
  root["bench"] = "bulk";
  root["transport"] = r.options.transport;
  root["ucx"] = r.machine.ucx;
  root["runs"] = r.options.runs;
  put_machine(root, r.machine);
  put_placement(root, r.placement);
  root["points"] = Json::array();
  for (const auto& point : r.points) root["points"].push_back(as_json(point, r.by_network));
  return text_of(root);
}

}  // namespace tc::bench
