// SPDX-License-Identifier: Apache-2.0
#include "tsi/measure.h"

#include <array>

#include "common/ping.h"

namespace tc::bench {

namespace {

constexpr std::array<std::string_view, 10> names{
    "raw-flags",        "raw",   "am",           "am-batched", "cached", "cached-batched", "uncached-object",
    "uncached-bitcode", "plain", "plain-batched"};

bool is_raw(Mode mode) noexcept { return mode == Mode::raw_flags || mode == Mode::raw; }
bool is_am(Mode mode) noexcept { return mode == Mode::am || mode == Mode::am_batched; }
bool is_plain(Mode mode) noexcept { return mode == Mode::plain || mode == Mode::plain_batched; }
bool carries_code(Mode mode) noexcept { return mode == Mode::uncached_object || mode == Mode::uncached_bitcode; }

// For ping() and pong().
struct Uncached {
  IfuncPeer& peer;
  void send() { peer.send_with_code(); }
  void poll() { peer.poll(); }
  uint64_t count() const { return peer.count(); }
  Status status() const { return peer.status(); }
};

// What carries a mode's calls and answers, given to `use`.
template <class Use>
auto with_peer(Peers& peers, Mode mode, Use use) {
  if (is_am(mode)) return use(*peers.am);
  if (mode == Mode::raw_flags) return use(peers.floor.memory->flags());
  if (mode == Mode::raw && peers.floor.socket) return use(BySocket{*peers.floor.socket});
  if (mode == Mode::raw) return use(peers.floor.memory->rings());
  auto& peer = is_plain(mode) ? *peers.plain : *peers.ifunc;
  return carries_code(mode) ? use(Uncached{peer}) : use(peer);
}

// Sends all of them, until the target says by a call of its own that it has all.
Result<double> raw_rate(Floor& floor, uint64_t calls) {
  const auto before = floor.socket ? floor.socket->count() : floor.memory->rings().count();
  const auto started = now_ns();
  if (floor.socket) {
    for (uint64_t i = 0; i < calls; ++i) floor.socket->send();
    floor.socket->flush();
    TC_CHECK(poll_until_count(*floor.socket, before + 1));
  } else {
    auto& rings = floor.memory->rings();
    for (uint64_t i = 0; i < calls; ++i) rings.send();
    TC_CHECK(poll_until_count(rings, before + 1));
  }
  return per_second(calls, now_ns() - started);
}

Result<double> am_rate(AmPeer& am, Mode mode, uint64_t calls) {
  const auto before = am.count();
  const auto started = now_ns();
  if (mode == Mode::am_batched)
    for (uint64_t i = 0; i < calls; i += AmPeer::batch) am.send_batch();
  else
    for (uint64_t i = 0; i < calls; ++i) am.send();
  TC_CHECK(poll_until_count(am, before + 1));
  return per_second(calls, now_ns() - started);
}

Result<double> ifunc_rate(IfuncPeer& peer, Mode mode, uint64_t calls) {
  const auto started = now_ns();
  if (mode == Mode::cached_batched || mode == Mode::plain_batched)
    for (uint64_t i = 0; i < calls; i += IfuncPeer::burst) peer.send_burst();
  else if (carries_code(mode))
    for (uint64_t i = 0; i < calls; ++i) peer.send_with_code();
  else
    for (uint64_t i = 0; i < calls; ++i) peer.send();
  TC_CHECK(peer.flush(ping_limit_ms));
  const auto spent = now_ns() - started;
  TC_CHECK(peer.status());
  return per_second(calls, spent);
}

Status answer_rate(Peers& peers, Mode mode, uint64_t calls) {
  return with_peer(peers, mode, [&](auto&& by) -> Status {
    TC_CHECK(poll_until_count(by, by.count() + calls));
    if (is_am(mode) || is_raw(mode)) by.send();  // an ifunc's source has its own way to know
    return by.status();
  });
}

Result<std::string> obey(Peers& peers, Talk& talk, const std::string& order) {
  std::string verb, word;
  uint64_t number = 0;
  read_words(order, verb, word, number);
  if (verb == "stat") {
    TC_ASSIGN(const auto value, peers.ifunc->stat(word.c_str()));
    return std::to_string(value);
  }
  if (verb == "pause") {  // asleep, so that this CPU is another's
    TC_CHECK(talk.say("go"));
    TC_CHECK(talk.expect("on"));
    return "done";
  }
  if (verb == "use") {
    TC_CHECK(peers.use(word == "bitcode" ? SliceForm::bitcode : SliceForm::object));
    return "used";
  }
  TC_ASSIGN(const auto mode, value_named<Mode>(names, word));
  TC_CHECK(talk.say("go"));
  if (verb == "latency") TC_CHECK(with_peer(peers, mode, [&](auto&& by) { return pong(by, number); }));
  if (verb == "rate") TC_CHECK(answer_rate(peers, mode, number));
  return "done";
}

}  // namespace

std::string_view mode_name(Mode mode) noexcept { return names[static_cast<size_t>(mode)]; }

void Peers::poll() {
  am->poll();
  ifunc->poll();
  if (plain != nullptr) plain->poll();
}

Status Peers::create(const BenchTransport& transport) {
  TC_ASSIGN(am, AmPeer::create(transport.ucx_tls));
  TC_ASSIGN(ifunc, IfuncPeer::create(transport));
  if (transport.encrypted()) {
    TC_ASSIGN(plain, IfuncPeer::create(transport.plain()));
  }
  return {};
}

Result<std::string> Peers::addresses() const {
  TC_ASSIGN(const auto am_address, am->address());
  return fmt::format("{} {} {}", ifunc->address(), am_address, plain != nullptr ? plain->address() : "none");
}

Status Peers::use(SliceForm form) {
  TC_ASSIGN(const auto bundle, tsi_variant(form, "bench"));
  TC_CHECK(ifunc->use(bundle));
  return plain != nullptr ? plain->use(bundle) : Status{};
}

Result<double> measure_latency(Peers& peers, Mode mode, uint64_t rounds) {
  return with_peer(peers, mode, [&](auto&& by) { return ping(by, rounds); });
}

Result<double> measure_rate(Peers& peers, Mode mode, uint64_t calls) {
  if (is_raw(mode)) return raw_rate(peers.floor, calls);
  if (is_am(mode)) return am_rate(*peers.am, mode, calls);
  return ifunc_rate(is_plain(mode) ? *peers.plain : *peers.ifunc, mode, calls);
}

Status serve_tsi(const Arguments& arguments, Talk& talk) {
  pin_to(1);
  TC_ASSIGN(const auto transport, BenchTransport::parse(arguments.at("transport")));
  Peers peers;
  TC_ASSIGN(peers.floor, Floor::offer(transport.by_network));
  TC_CHECK(peers.create(transport));
  const auto meanwhile = [&] { peers.poll(); };
  TC_ASSIGN(const auto ours, peers.addresses());
  TC_ASSIGN(const auto line, talk.ask(fmt::format("{} {}", ours, peers.floor.addresses()), meanwhile));
  std::string node_address, am_address, plain_address;
  read_words(line, node_address, am_address, plain_address);
  TC_CHECK(peers.floor.accept());
  TC_CHECK(peers.am->connect(am_address));
  TC_CHECK(peers.ifunc->connect(node_address));
  if (peers.plain != nullptr) TC_CHECK(peers.plain->connect(plain_address));
  TC_CHECK(talk.say("connected"));
  return talk.serve([&](const std::string& order) { return obey(peers, talk, order); }, meanwhile);
}

}  // namespace tc::bench
