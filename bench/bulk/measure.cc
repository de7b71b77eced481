// SPDX-License-Identifier: Apache-2.0
#include "bulk/measure.h"

#include <array>
#include <cstring>

namespace tc::bench {

namespace {

constexpr std::array names{std::pair{BulkMode::flags, "flags"},
                           std::pair{BulkMode::call, "call"},
                           std::pair{BulkMode::reply, "reply"},
                           std::pair{BulkMode::copy, "copy"},
                           std::pair{BulkMode::am, "am"},
                           std::pair{BulkMode::raw, "raw"},
                           std::pair{BulkMode::aes, "aes"},
                           std::pair{BulkMode::plain_call, "plain-call"},
                           std::pair{BulkMode::plain_reply, "plain-reply"}};

Status copy(BulkPeers& peers, ByteView bytes) {
  std::memcpy(peers.landing.data(), bytes.data(), bytes.size());
  asm volatile("" : : "r"(peers.landing.data()) : "memory");  // or it would not be done at all
  return {};
}

Status stream(RawSocket& socket, ByteView bytes) {
  std::byte answer{};
  TC_CHECK(socket.write(bytes));
  return socket.read({&answer, 1});
}

Status one_round(BulkPeers& peers, BulkMode mode, ByteView bytes) {
  switch (mode) {
    case BulkMode::call: return peers.node->call();
    case BulkMode::reply: TC_CHECK(peers.node->fetch()); return {};
    case BulkMode::plain_call: return peers.plain->call();
    case BulkMode::plain_reply: TC_CHECK(peers.plain->fetch()); return {};
    case BulkMode::aes: return peers.aes->seal(bytes, peers.landing);
    case BulkMode::copy: return copy(peers, bytes);
    case BulkMode::am: return peers.am->send(bytes);
    case BulkMode::raw: return stream(*peers.floor.socket, bytes);
    case BulkMode::flags: break;
  }
  return fail(TC_ERR_INTERNAL, "flags carry no bytes");
}

// The target serves until the source says by a flag that all answers have come.
template <class Serve>
Status serve_until_flag(RawFlags& flags, Serve serve) {
  constexpr uint64_t polls_between_clocks = 1u << 16;
  const auto wanted = flags.count() + 1;
  const auto deadline = Deadline::after_ms(ping_limit_ms);
  for (uint64_t polls = 1; flags.count() < wanted; ++polls) {
    flags.poll();
    TC_CHECK(serve());
    if (polls % polls_between_clocks == 0 && deadline.passed())
      return fail(TC_ERR_TIMEOUT, "the other process has not said within {} ms that it is done", ping_limit_ms);
  }
  return {};
}

Status take_streams(BulkPeers& peers, size_t size, uint64_t rounds) {
  const std::byte answer{1};
  for (uint64_t round = 0; round < rounds; ++round) {
    TC_CHECK(peers.floor.socket->read({peers.landing.data(), size}));
    TC_CHECK(peers.floor.socket->write({&answer, 1}));
  }
  return serve_until_flag(peers.floor.memory->flags(), [] { return Status{}; });
}

}  // namespace

std::string_view mode_name(BulkMode mode) noexcept { return names[static_cast<size_t>(mode)].second; }

Result<BulkMode> parse_bulk_mode(std::string_view name) {
  for (const auto& [mode, known] : names)
    if (known == name) return mode;
  return fail(TC_ERR_INVALID, "there is no mode '{}'", name);
}

BulkPeers::BulkPeers(size_t largest) : data(largest), landing(largest) {
  std::memset(landing.data(), 1, landing.size());
  for (uint64_t i = 0; i < largest / sizeof i; ++i) {
    const uint64_t word = (i + 1) * 0x9e3779b97f4a7c15;
    std::memcpy(data.data() + i * sizeof word, &word, sizeof word);
  }
}

Status BulkPeers::poll() {
  node->poll();
  if (plain != nullptr) plain->poll();
  return am->poll();
}

Result<double> measure_bulk(BulkPeers& peers, BulkMode mode, uint64_t rounds) {
  const ByteView bytes = peers.node->payload();
  TC_CHECK(one_round(peers, mode, bytes));
  const auto started = now_ns();
  for (uint64_t round = 0; round < rounds; ++round) TC_CHECK(one_round(peers, mode, bytes));
  const auto spent = now_ns() - started;
  peers.floor.memory->flags().send();
  return static_cast<double>(rounds * bytes.size()) / static_cast<double>(spent);
}

Status answer_bulk(BulkPeers& peers, BulkMode mode, size_t size, uint64_t rounds) {
  auto& flags = peers.floor.memory->flags();
  switch (mode) {
    case BulkMode::flags: return pong(ByFlags{flags}, rounds);
    case BulkMode::raw: return take_streams(peers, size, rounds + 1);
    case BulkMode::am: return serve_until_flag(flags, [&] { return peers.am->poll(); });
    case BulkMode::copy:
    case BulkMode::aes: return serve_until_flag(flags, [] { return Status{}; });
    default: break;
  }
  auto& node = mode == BulkMode::call || mode == BulkMode::reply ? *peers.node : *peers.plain;
  return serve_until_flag(flags, [&] {
    node.poll();
    return Status{};
  });
}

Result<double> measure_flags(BulkPeers& peers, uint64_t rounds) {
  return ping(ByFlags{peers.floor.memory->flags()}, rounds);
}

}  // namespace tc::bench
