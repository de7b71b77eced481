// SPDX-License-Identifier: Apache-2.0
//
// The source's process: measures.
#include "bulk/bulk.h"

#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "common/pinning.h"
#include "common/shared_key.h"
#include "common/talk.h"

namespace tc::bench {

namespace {

constexpr uint64_t talk_ms = 60'000;
constexpr uint64_t flag_rounds = 20'000;
constexpr uint64_t most_rounds = 500;  // of one way in one run

class Bulk {
 public:
  explicit Bulk(const BulkOptions& options) : largest_(std::ranges::max(options.sizes)), peers_(largest_) {
    result_.options = options;
  }
  Status run();
  BulkResult take() { return std::move(result_); }

 private:
  using PerMode = std::map<BulkMode, std::vector<double>>;

  Status start();
  Status hear(std::string_view expected);
  Status flags();
  Status one(BulkMode mode, uint64_t size, uint64_t rounds, std::vector<double>& into);
  Status warm_up(uint64_t size);
  Status measure(uint64_t size);
  std::vector<BulkMode> modes() const;
  void summarize_point(BulkPoint& point, const PerMode& rates) const;
  void show_progress(uint64_t size, int run) const;

  const uint64_t largest_;
  std::optional<SharedKey> key_;
  BulkPeers peers_;
  BulkResult result_;
  std::unique_ptr<Partner> partner_;
  std::vector<double> flag_ns_;
};

Status Bulk::hear(std::string_view expected) {
  TC_ASSIGN(const auto said, partner_->talk().hear(Deadline::after_ms(talk_ms), [this] { (void)peers_.poll(); }));
  return said == expected ? Status{} : fail(TC_ERR_INTERNAL, "the target said '{}' when '{}' was due", said, expected);
}

Status Bulk::start() {
  auto& options = result_.options;
  if (usable_cpus() < 2) return fail(TC_ERR_UNSUPPORTED, "this benchmark needs two CPUs and may use {}", usable_cpus());
  TC_ASSIGN(const auto transport, BenchTransport::parse(options.transport));
  result_.by_network = transport.by_network;
  if (transport.by_network && std::getenv("UCX_NET_DEVICES") == nullptr) ::setenv("UCX_NET_DEVICES", "lo", 1);
  result_.machine = describe_machine(ucp_get_version_string());
  result_.placement = describe_placement();
  if (transport.encrypted()) {
    TC_ASSIGN(key_, SharedKey::make());
  }
  TC_ASSIGN(partner_, Partner::start({"bench", "bulk-target", "--transport", options.transport, "--largest",
                                      std::to_string(largest_)}));
  pin_to(0);
  TC_ASSIGN(peers_.am, BulkAm::create(transport.ucx_tls, {}));
  TC_ASSIGN(peers_.node, BulkNode::create(transport, {}));
  if (transport.encrypted()) {
    TC_ASSIGN(peers_.plain, BulkNode::create(transport.plain(), {}));
    TC_ASSIGN(peers_.aes, AesGcm::create());
  }
  TC_ASSIGN(const auto line, partner_->talk().hear(Deadline::after_ms(talk_ms), [this] { (void)peers_.poll(); }));
  std::string verb, node, am, raw_memory, raw_socket, plain;
  std::istringstream(line) >> verb >> node >> am >> raw_memory >> raw_socket >> plain;
  TC_ASSIGN(peers_.floor, Floor::open(raw_memory, raw_socket));
  TC_CHECK(peers_.am->connect(am));
  TC_ASSIGN(const auto our_am, peers_.am->address());
  TC_CHECK(partner_->talk().say(our_am));
  TC_CHECK(hear("connected"));
  TC_CHECK(peers_.node->connect(node));  // the target polls while it waits for the next order
  return peers_.plain != nullptr ? peers_.plain->connect(plain) : Status{};
}

Status Bulk::flags() {
  TC_CHECK(partner_->talk().say(fmt::format("{} 0 {}", mode_name(BulkMode::flags), flag_rounds)));
  TC_CHECK(hear("go"));
  TC_ASSIGN(const auto ns, measure_flags(peers_, flag_rounds));
  flag_ns_.push_back(ns);
  return hear("done");
}

Status Bulk::one(BulkMode mode, uint64_t size, uint64_t rounds, std::vector<double>& into) {
  TC_CHECK(partner_->talk().say(fmt::format("{} {} {}", mode_name(mode), size, rounds)));
  TC_CHECK(hear("go"));
  TC_ASSIGN(const auto rate, measure_bulk(peers_, mode, rounds));
  into.push_back(rate);
  return hear("done");
}

std::vector<BulkMode> Bulk::modes() const {
  std::vector modes{BulkMode::copy, BulkMode::call, BulkMode::reply, BulkMode::am};
  if (result_.by_network) modes.push_back(BulkMode::raw);
  if (peers_.plain != nullptr) modes.insert(modes.end(), {BulkMode::aes, BulkMode::plain_call, BulkMode::plain_reply});
  return modes;
}

// Every way once, unmeasured. The target is in the middle of a talk, which is slow, and polls.
Status Bulk::warm_up(uint64_t size) {
  TC_CHECK(peers_.node->use(peers_.data, size));
  TC_CHECK(peers_.node->fetch_and_compare(peers_.data));
  if (peers_.plain != nullptr) TC_CHECK(peers_.plain->use(peers_.data, size));
  std::vector<double> ignored;
  for (const auto mode : modes()) TC_CHECK(one(mode, size, 1, ignored));
  return {};
}

Status Bulk::measure(uint64_t size) {
  TC_CHECK(warm_up(size));
  BulkPoint point;
  point.bytes = size;
  point.rounds = std::clamp<uint64_t>(result_.options.run_bytes / size, 1, most_rounds);
  PerMode rates;
  for (int run = 0; run < result_.options.runs; ++run) {
    show_progress(size, run);
    TC_CHECK(flags());
    for (const auto mode : modes()) TC_CHECK(one(mode, size, point.rounds, rates[mode]));
  }
  summarize_point(point, rates);
  result_.points.push_back(std::move(point));
  return {};
}

void Bulk::summarize_point(BulkPoint& point, const PerMode& rates) const {
  const auto ratios = [&](BulkMode mode, BulkMode floor) {
    const auto &of = rates.at(mode), &to = rates.at(floor);
    std::vector<double> values;
    for (size_t run = 0; run < of.size(); ++run) values.push_back(of[run] / to[run]);
    return summarize(std::move(values));
  };
  for (const auto mode : modes()) {
    point.rate[mode] = summarize(rates.at(mode));
    point.to_memcpy[mode] = ratios(mode, BulkMode::copy);
    point.to_am[mode] = ratios(mode, BulkMode::am);
    if (result_.by_network) point.to_raw[mode] = ratios(mode, BulkMode::raw);
  }
  if (peers_.plain == nullptr) return;
  point.to_plain[BulkMode::call] = ratios(BulkMode::call, BulkMode::plain_call);
  point.to_plain[BulkMode::reply] = ratios(BulkMode::reply, BulkMode::plain_reply);
}

void Bulk::show_progress(uint64_t size, int run) const {
  if (::isatty(STDERR_FILENO) == 0) return;
  const bool last = run + 1 == result_.options.runs;
  std::fprintf(stderr, "\r%llu bytes, run %d of %d\033[K%s", static_cast<unsigned long long>(size), run + 1,
               result_.options.runs, last ? "\r\033[K" : "");
}

Status Bulk::run() {
  TC_CHECK(start());
  for (const auto size : result_.options.sizes) TC_CHECK(measure(size));
  result_.placement.set_flags(flag_ns_);
  return partner_->talk().say("end");
}

}  // namespace

Result<BulkResult> run_bulk(const BulkOptions& options) {
  for (const auto size : options.sizes)
    if (size < least_bulk_bytes || size > most_bulk_bytes || size % sizeof(uint64_t) != 0)
      return fail(TC_ERR_INVALID, "a size is {} when it should be a multiple of 8 from {} to {}", size,
                  least_bulk_bytes, most_bulk_bytes);
  if (options.sizes.empty()) return fail(TC_ERR_INVALID, "there is no size to measure");
  Bulk bulk(options);
  TC_CHECK(bulk.run());
  return bulk.take();
}

}  // namespace tc::bench
