// SPDX-License-Identifier: Apache-2.0
#include "simulation/stranger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "story.h"

namespace tc::simulation {

using node::test::operator+;

namespace {

constexpr size_t most_frames_kept = 64;
// Of a story that nobody has sent.
constexpr uint64_t her_number = (uint64_t{1} << 47) + 1;

Bytes random_bytes(Dice& dice, size_t size) {
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(dice.number());
  return bytes;
}

Bytes her_story() {
  const story what{
      .id = her_number, .sum = 0, .end = story_replies, .step = 0, .steps = 0, .injections = 0, .route = {}};
  Bytes bytes(sizeof what);
  std::memcpy(bytes.data(), &what, sizeof what);
  return bytes;
}

}  // namespace

void Stranger::act(Dice dice, size_t node, const std::vector<std::string>& addresses) {
  if (peer_.lost) vanish();
  if (!is_connected_ || dice.once_in(4)) return connect(dice, node, addresses);
  if (dice.once_in(32)) return vanish();
  if (dice.once_in(16)) peer_.set_reading(dice.once_in(2));
  const auto frames = dice.skewed(40);
  for (uint64_t i = 0; i < frames && !peer_.lost; ++i) send(dice);
  peer_.flush();
}

void Stranger::progress() {
  peer_.progress();
  if (peer_.frames.size() > most_frames_kept) peer_.frames.clear();
}

void Stranger::vanish() {
  peer_.vanish();
  peer_.lost.reset();
  is_connected_ = false;
}

// As one of the others, sometimes.
void Stranger::connect(Dice& dice, size_t node, const std::vector<std::string>& addresses) {
  vanish();
  const auto other = dice.below(addresses.size());
  peer_.says = node::test::RawPeer::hello();
  peer_.says.instance = dice.number() | 1;
  peer_.says.node_id = dice.once_in(2) ? UINT32_MAX : static_cast<uint32_t>(other);
  peer_.says.address = dice.once_in(2) ? address_ : dice.once_in(2) ? std::string() : addresses[other];
  if (dice.once_in(4)) peer_.says.max_message = dice.skewed(UINT64_MAX);
  auto greeting = wire::encode_hello(peer_.says);
  if (dice.once_in(8)) greeting[dice.below(greeting.size())] ^= static_cast<std::byte>(1 << dice.below(8));
  if (dice.once_in(16)) greeting.resize(dice.below(greeting.size()));
  peer_.connect(addresses[node], greeting);
  is_connected_ = true;
}

void Stranger::send(Dice& dice) {
  if (!peer_.frames.empty() && dice.once_in(4)) {
    const auto& seen = peer_.frames[dice.below(peer_.frames.size())];
    if (seen.header.kind == wire::Kind::call || seen.header.kind == wire::Kind::call_code) return answer(seen);
    (void)peer_.send(seen.header.kind, seen.header.flags, seen.header.number, seen.body);
    return;
  }
  const auto kind = static_cast<wire::Kind>(dice.once_in(16) ? dice.below(16) : 1 + dice.below(wire::last_kind));
  auto body = body_of(dice, kind);
  if (dice.once_in(8)) body.resize(dice.below(body.size() + 1));
  const auto number = static_cast<uint32_t>(dice.skewed(wire::max_number));
  const auto flags = static_cast<uint8_t>(dice.once_in(8)   ? dice.below(16)
                                          : dice.once_in(2) ? wire::flag_call_header
                                                            : 0);
  (void)peer_.send(kind, flags, number, body);
}

// A call that is not meant for her.
void Stranger::answer(const node::test::RawPeer::Frame& frame) {
  ByteView body = frame.body;
  if (frame.header.kind == wire::Kind::call_code) {
    const auto code = wire::decode_code(body);
    if (!code) return;
    body = code->payload;
  }
  if ((frame.header.flags & wire::flag_call_header) == 0 || body.size() < wire::call_header_bytes) return;
  const wire::Reply reply{.token = wire::read_call_header(body.data()).token,
                          .status = TC_OK,
                          .code = 0,
                          .node_id = 0,
                          .message = {},
                          .bytes = {}};
  (void)peer_.send(wire::Kind::reply, 0, wire::encode_reply(reply));
}

// Mostly what a frame of that kind has.
Bytes Stranger::body_of(Dice& dice, wire::Kind kind) const {
  if (dice.once_in(4)) return random_bytes(dice, dice.skewed(4096));
  const auto token = 1 + dice.skewed(1 << 20);
  switch (kind) {
    case wire::Kind::call: return node::test::call_header(token, 100) + her_story();
    case wire::Kind::call_code:
    case wire::Kind::code: return code_ + her_story();
    case wire::Kind::need: return wire::encode_need({ContentId{}, TargetTriple::host().text});
    case wire::Kind::reply:
      return wire::encode_reply({.token = dice.once_in(4) ? 0 : token,
                                 .status = dice.once_in(2) ? TC_OK : TC_ERR_DENIED,
                                 .code = 0,
                                 .node_id = static_cast<uint32_t>(dice.below(16)),
                                 .message = "so she says",
                                 .bytes = {}});
    case wire::Kind::barrier: return wire::encode_barrier(dice.skewed(1000));
    case wire::Kind::disconnect: return wire::encode_disconnect({TC_ERR_INTERNAL, "she leaves"});
    default: return random_bytes(dice, dice.skewed(256));
  }
}

}  // namespace tc::simulation
