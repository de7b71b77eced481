// SPDX-License-Identifier: Apache-2.0
#include "tsi/measure.h"

#include <array>

#include "common/ping.h"

namespace tc::bench {

namespace {

constexpr std::array names{std::pair{Mode::raw_flags, "raw-flags"},
                           std::pair{Mode::raw, "raw"},
                           std::pair{Mode::am, "am"},
                           std::pair{Mode::am_batched, "am-batched"},
                           std::pair{Mode::cached, "cached"},
                           std::pair{Mode::cached_batched, "cached-batched"},
                           std::pair{Mode::uncached_object, "uncached-object"},
                           std::pair{Mode::uncached_bitcode, "uncached-bitcode"},
                           std::pair{Mode::plain, "plain"},
                           std::pair{Mode::plain_batched, "plain-batched"}};

bool is_raw(Mode mode) noexcept { return mode == Mode::raw_flags || mode == Mode::raw; }
bool is_am(Mode mode) noexcept { return mode == Mode::am || mode == Mode::am_batched; }
bool is_plain(Mode mode) noexcept { return mode == Mode::plain || mode == Mode::plain_batched; }
bool is_cached(Mode mode) noexcept { return mode == Mode::cached || mode == Mode::plain; }
IfuncPeer& ifunc_peer(Peers& peers, Mode mode) noexcept { return is_plain(mode) ? *peers.plain : *peers.ifunc; }

// For ping() and pong(), beside those of floor/floor.h.
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

double per_second(uint64_t calls, uint64_t ns) { return static_cast<double>(calls) * 1e9 / static_cast<double>(ns); }

Result<double> raw_rate(Floor& floor, uint64_t calls) {
  const auto started = now_ns();
  if (floor.socket) {
    const auto before = floor.socket->count();
    for (uint64_t i = 0; i < calls; ++i) floor.socket->send();
    floor.socket->flush();
    BySocket by{*floor.socket};
    TC_CHECK(poll_until_count(by, before + 1));  // the target says that it has all
  } else {
    ByRings by{floor.memory->rings()};
    const auto before = by.count();
    for (uint64_t i = 0; i < calls; ++i) by.send();
    TC_CHECK(poll_until_count(by, before + 1));
  }
  return per_second(calls, now_ns() - started);
}

template <class By>
Status take_and_answer(By by, uint64_t calls) {
  TC_CHECK(poll_until_count(by, by.count() + calls));
  by.send();
  return by.status();
}

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
  if (is_cached(mode))
    for (uint64_t i = 0; i < calls; ++i) peer.send();
  else if (mode == Mode::cached_batched || mode == Mode::plain_batched)
    for (uint64_t i = 0; i < calls; i += IfuncPeer::burst) peer.send_burst();
  else
    for (uint64_t i = 0; i < calls; ++i) peer.send_with_code();
  TC_CHECK(peer.flush(ping_limit_ms));
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
  if (mode == Mode::raw_flags) return ping(ByFlags{peers.floor.memory->flags()}, rounds);
  if (mode == Mode::raw && peers.floor.socket) return ping(BySocket{*peers.floor.socket}, rounds);
  if (mode == Mode::raw) return ping(ByRings{peers.floor.memory->rings()}, rounds);
  auto& peer = ifunc_peer(peers, mode);
  return is_cached(mode) ? ping(Cached{peer}, rounds) : ping(Uncached{peer}, rounds);
}

Status answer_latency(Peers& peers, Mode mode, uint64_t rounds) {
  if (is_am(mode)) return pong(ByAm{*peers.am}, rounds);
  if (mode == Mode::raw_flags) return pong(ByFlags{peers.floor.memory->flags()}, rounds);
  if (mode == Mode::raw && peers.floor.socket) return pong(BySocket{*peers.floor.socket}, rounds);
  if (mode == Mode::raw) return pong(ByRings{peers.floor.memory->rings()}, rounds);
  auto& peer = ifunc_peer(peers, mode);
  return is_cached(mode) ? pong(Cached{peer}, rounds) : pong(Uncached{peer}, rounds);
}

Result<double> measure_rate(Peers& peers, Mode mode, uint64_t calls) {
  if (is_raw(mode)) return raw_rate(peers.floor, calls);
  return is_am(mode) ? am_rate(*peers.am, mode, calls) : ifunc_rate(ifunc_peer(peers, mode), mode, calls);
}

Status answer_rate(Peers& peers, Mode mode, uint64_t calls) {
  if (is_am(mode)) return take_and_answer(ByAm{*peers.am}, calls);
  if (is_raw(mode) && peers.floor.socket) return take_and_answer(BySocket{*peers.floor.socket}, calls);
  if (is_raw(mode)) return take_and_answer(ByRings{peers.floor.memory->rings()}, calls);
  Cached by{ifunc_peer(peers, mode)};
  return poll_until_count(by, by.count() + calls);
}

}  // namespace tc::bench
