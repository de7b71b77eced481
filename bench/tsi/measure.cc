// SPDX-License-Identifier: Apache-2.0
#include "tsi/measure.h"

#include <array>

namespace tc::bench {

namespace {

constexpr uint64_t limit_ms = 60'000;
constexpr uint64_t polls_between_looks = 1u << 16;

constexpr std::array names{std::pair{Mode::am, "am"},
                           std::pair{Mode::am_batched, "am-batched"},
                           std::pair{Mode::cached, "cached"},
                           std::pair{Mode::cached_batched, "cached-batched"},
                           std::pair{Mode::uncached_object, "uncached-object"},
                           std::pair{Mode::uncached_bitcode, "uncached-bitcode"}};

bool is_am(Mode mode) noexcept { return mode == Mode::am || mode == Mode::am_batched; }

// One call by each way, with nothing between the loop and the way's own send and poll.
struct ByAm {
  AmPeer& peer;
  void send() { peer.send(); }
  void poll() { peer.progress(); }
  uint64_t count() const { return peer.count(); }
  Status status() const { return {}; }
};
struct Cached {
  IfuncPeer& peer;
  void send() { peer.send(); }
  void poll() { peer.poll(); }
  uint64_t count() const { return peer.count(); }
  Status status() const { return peer.status(); }
};
struct Uncached {
  IfuncPeer& peer;
  void send() { peer.send_with_code(); }
  void poll() { peer.poll(); }
  uint64_t count() const { return peer.count(); }
  Status status() const { return peer.status(); }
};

template <class By>
Status poll_until_count(By& by, uint64_t wanted) {
  const auto deadline = Deadline::after_ms(limit_ms);
  for (uint64_t polls = 1; by.count() < wanted; ++polls) {
    by.poll();
    if (polls % polls_between_looks != 0) continue;
    TC_CHECK(by.status());
    if (deadline.passed())
      return fail(TC_ERR_TIMEOUT, "{} of {} calls came within {} ms", by.count(), wanted, limit_ms);
  }
  return {};
}

template <class By>
Result<double> ping(By by, uint64_t rounds) {
  const auto before = by.count();
  const auto started = now_ns();
  for (uint64_t i = 1; i <= rounds; ++i) {
    by.send();
    TC_CHECK(poll_until_count(by, before + i));
  }
  const auto spent = now_ns() - started;
  TC_CHECK(by.status());
  return static_cast<double>(spent) / static_cast<double>(rounds) / 2;
}

template <class By>
Status pong(By by, uint64_t rounds) {
  const auto before = by.count();
  for (uint64_t i = 1; i <= rounds; ++i) {
    TC_CHECK(poll_until_count(by, before + i));
    by.send();
  }
  return by.status();
}

double per_second(uint64_t calls, uint64_t ns) { return static_cast<double>(calls) * 1e9 / static_cast<double>(ns); }

Result<double> am_rate(AmPeer& am, Mode mode, uint64_t calls) {
  ByAm by{am};
  const auto before = am.count();
  const auto started = now_ns();
  if (mode == Mode::am_batched)
    for (uint64_t i = 0; i < calls; i += AmPeer::batch) am.send_batch();
  else
    for (uint64_t i = 0; i < calls; ++i) am.send();
  TC_CHECK(poll_until_count(by, before + 1));  // the target says that it has all
  return per_second(calls, now_ns() - started);
}

Result<double> ifunc_rate(IfuncPeer& peer, Mode mode, uint64_t calls) {
  const auto started = now_ns();
  if (mode == Mode::cached)
    for (uint64_t i = 0; i < calls; ++i) peer.send();
  else if (mode == Mode::cached_batched)
    for (uint64_t i = 0; i < calls; i += IfuncPeer::burst) peer.send_burst();
  else
    for (uint64_t i = 0; i < calls; ++i) peer.send_with_code();
  TC_CHECK(peer.flush(limit_ms));
  const auto spent = now_ns() - started;
  TC_CHECK(peer.status());
  return per_second(calls, spent);
}

}  // namespace

std::string_view mode_name(Mode mode) noexcept {
  for (const auto& [known, name] : names)
    if (known == mode) return name;
  return "unknown";
}

Result<Mode> parse_mode(std::string_view name) {
  for (const auto& [mode, known] : names)
    if (known == name) return mode;
  return fail(TC_ERR_INVALID, "there is no mode '{}'", name);
}

Result<double> measure_latency(Peers& peers, Mode mode, uint64_t rounds) {
  if (is_am(mode)) return ping(ByAm{*peers.am}, rounds);
  return mode == Mode::cached ? ping(Cached{*peers.ifunc}, rounds) : ping(Uncached{*peers.ifunc}, rounds);
}

Status answer_latency(Peers& peers, Mode mode, uint64_t rounds) {
  if (is_am(mode)) return pong(ByAm{*peers.am}, rounds);
  return mode == Mode::cached ? pong(Cached{*peers.ifunc}, rounds) : pong(Uncached{*peers.ifunc}, rounds);
}

Result<double> measure_rate(Peers& peers, Mode mode, uint64_t calls) {
  return is_am(mode) ? am_rate(*peers.am, mode, calls) : ifunc_rate(*peers.ifunc, mode, calls);
}

Status answer_rate(Peers& peers, Mode mode, uint64_t calls) {
  if (is_am(mode)) {
    ByAm by{*peers.am};
    TC_CHECK(poll_until_count(by, by.count() + calls));
    by.send();
    return {};
  }
  Cached by{*peers.ifunc};
  return poll_until_count(by, by.count() + calls);
}

}  // namespace tc::bench
