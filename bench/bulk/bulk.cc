// SPDX-License-Identifier: Apache-2.0
//
// The source's process: measures, and reports.
#include "bulk/bulk.h"

#include <algorithm>
#include <array>
#include <optional>

#include "bulk/measure.h"
#include "common/progress.h"

namespace tc::bench {

namespace {

constexpr uint64_t flag_rounds = 20'000;
constexpr uint64_t most_rounds = 500;  // of one way in one run

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

struct Point {
  uint64_t bytes = 0;
  uint64_t rounds = 0;     // in one run
  Samples<BulkMode> rate;  // bytes per ns, which are GB per second
};

class Bulk {
 public:
  Bulk(const BulkOptions& options, Pair pair)
      : options_(options), pair_(std::move(pair)), peers_(std::ranges::max(options.sizes)) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Meanwhile poll() {
    return [this] { (void)peers_.poll(); };
  }
  Status connect();
  Status flags();
  Status one(BulkMode mode, uint64_t size, uint64_t rounds, Samples<BulkMode>& into);
  Status warm_up(uint64_t size);
  Status measure(uint64_t size);
  std::vector<BulkMode> modes() const;
  std::string table() const;
  Json json() const;

  const BulkOptions& options_;
  Pair pair_;
  BulkPeers peers_;
  std::vector<double> flag_ns_;
  std::vector<Point> points_;
  Progress progress_{"bulk"};
};

Status Bulk::connect() {
  const auto& transport = pair_.transport;
  TC_ASSIGN(peers_.am, BulkAm::create(transport.ucx_tls, {}));
  TC_ASSIGN(peers_.node, BulkNode::create(transport, {}));
  if (transport.encrypted()) {
    TC_ASSIGN(peers_.plain, BulkNode::create(transport.plain(), {}));
    TC_ASSIGN(peers_.aes, AesGcm::create());
  }
  TC_ASSIGN(const auto line, pair_.talk().hear(poll()));
  std::string node, am, raw_memory, raw_socket, plain;
  read_words(line, node, am, raw_memory, raw_socket, plain);
  TC_ASSIGN(peers_.floor, Floor::open(raw_memory, raw_socket));
  TC_CHECK(peers_.am->connect(am));
  TC_ASSIGN(const auto our_am, peers_.am->address());
  TC_CHECK(pair_.talk().tell(our_am, "connected", poll()));
  TC_CHECK(peers_.node->connect(node));  // the target polls while it waits for the next order
  return peers_.plain != nullptr ? peers_.plain->connect(plain) : Status{};
}

Status Bulk::flags() {
  TC_ASSIGN(flag_ns_.emplace_back(), pair_.measure(fmt::format("{} 0 {}", mode_name(BulkMode::flags), flag_rounds),
                                                   poll(), [this] { return measure_flags(peers_, flag_rounds); }));
  return {};
}

Status Bulk::one(BulkMode mode, uint64_t size, uint64_t rounds, Samples<BulkMode>& into) {
  TC_ASSIGN(const auto rate, pair_.measure(fmt::format("{} {} {}", mode_name(mode), size, rounds), poll(),
                                           [&] { return measure_bulk(peers_, mode, rounds); }));
  into.add(mode, rate);
  return {};
}

std::vector<BulkMode> Bulk::modes() const {
  std::vector modes{BulkMode::copy, BulkMode::call, BulkMode::reply, BulkMode::am};
  if (pair_.transport.by_network) modes.push_back(BulkMode::raw);
  if (peers_.plain != nullptr) modes.insert(modes.end(), {BulkMode::aes, BulkMode::plain_call, BulkMode::plain_reply});
  return modes;
}

// Every way once, unmeasured. The target is in the middle of a talk, which is slow, and polls.
Status Bulk::warm_up(uint64_t size) {
  TC_CHECK(peers_.node->use(peers_.data, size));
  TC_CHECK(peers_.node->fetch_and_compare(peers_.data));
  if (peers_.plain != nullptr) TC_CHECK(peers_.plain->use(peers_.data, size));
  Samples<BulkMode> ignored;
  for (const auto mode : modes()) TC_CHECK(one(mode, size, 1, ignored));
  return {};
}

Status Bulk::measure(uint64_t size) {
  TC_CHECK(warm_up(size));
  Point point{size, std::clamp<uint64_t>(options_.run_bytes / size, 1, most_rounds), {}};
  for (int run = 0; run < options_.runs; ++run) {
    progress_.show(static_cast<double>(points_.size()) + static_cast<double>(run) / options_.runs,
                   static_cast<double>(options_.sizes.size()),
                   fmt::format("{} bytes, run {} of {}", size, run + 1, options_.runs));
    TC_CHECK(flags());
    for (const auto mode : modes()) TC_CHECK(one(mode, size, point.rounds, point.rate));
  }
  points_.push_back(std::move(point));
  return {};
}

Status Bulk::run() {
  TC_CHECK(connect());
  for (const auto size : options_.sizes) TC_CHECK(measure(size));
  pair_.placement.set_flags(flag_ns_);
  return pair_.talk().say("end");
}

std::string size_text(uint64_t bytes) {
  if (bytes % (1u << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  return bytes % (1u << 10) == 0 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

// What an encrypted call or reply is compared with; itself when there is nothing.
BulkMode plain_of(BulkMode mode) {
  if (mode == BulkMode::call) return BulkMode::plain_call;
  return mode == BulkMode::reply ? BulkMode::plain_reply : mode;
}

std::string Bulk::table() const {
  const auto introduction = fmt::format(
      "{}.\n"
      "Large payloads, {}, UCX {}, {} interleaved runs, two pinned processes.\n"
      "GB (10^9 bytes) per second, each message answered before the next: medians with quartiles; ratios are medians "
      "of the runs' own ratios.\n\n",
      format_placement(pair_.placement), options_.transport, pair_.machine.ucx, options_.runs);
  Table table(
      introduction,
      {{"", 9}, {"", -16, 2}, {"GB/s", 9}, {"", 20}, {"x memcpy", 10}, {"x AM", 8}, {"x raw", 8}, {"x plain", 9}});
  for (const auto& point : points_)
    for (const auto& way : ways) {
      if (!point.rate.has(way.mode)) continue;
      const auto rate = point.rate.of(way.mode);
      const auto ratio = [&](BulkMode to, bool shown = true) {
        return shown && point.rate.has(to) ? number(point.rate.ratio(way.mode, to).median, "{:.2f}") : "-";
      };
      table.row({way.mode == ways.front().mode ? size_text(point.bytes) : "", way.title, number(rate.median, "{:.2f}"),
                 quartiles(rate, "{:.2f}"), ratio(BulkMode::copy), ratio(BulkMode::am), ratio(BulkMode::raw),
                 ratio(plain_of(way.mode), plain_of(way.mode) != way.mode)});
    }
  return table.take();
}

Json Bulk::json() const {
  auto root = json_head("bulk", options_.transport, pair_.machine, options_.runs);
  put_machine(root, pair_.machine);
  put_placement(root, pair_.placement);
  root["points"] = Json::array();
  for (const auto& point : points_) {
    auto& object = root["points"].emplace_back();
    object["bytes"] = point.bytes;
    object["rounds"] = point.rounds;
    for (const auto& way : ways)
      if (point.rate.has(way.mode)) put(object, fmt::format("{}_gb_per_s", way.key), point.rate.of(way.mode));
    for (const auto& [mode, key] : {std::pair{BulkMode::call, "call"}, std::pair{BulkMode::reply, "reply"}})
      for (const auto& [to, floor] : {std::pair{BulkMode::copy, "memcpy"}, std::pair{BulkMode::am, "am"},
                                      std::pair{BulkMode::raw, "raw"}, std::pair{plain_of(mode), "plain"}})
        if (point.rate.has(to)) put(object, fmt::format("{}_ratio_to_{}", key, floor), point.rate.ratio(mode, to));
  }
  return root;
}

}  // namespace

Result<Report> run_bulk(const BulkOptions& options) {
  for (const auto size : options.sizes)
    if (size < least_bulk_bytes || size > most_bulk_bytes || size % sizeof(uint64_t) != 0)
      return fail(TC_ERR_INVALID, "a size is {} when it should be a multiple of 8 from {} to {}", size,
                  least_bulk_bytes, most_bulk_bytes);
  if (options.sizes.empty()) return fail(TC_ERR_INVALID, "there is no size to measure");
  TC_ASSIGN(auto pair, Pair::start("bulk-target", options.transport,
                                   {{"largest", std::to_string(std::ranges::max(options.sizes))}}));
  Bulk bulk(options, std::move(pair));
  TC_CHECK(bulk.run());
  return bulk.report();
}

}  // namespace tc::bench
