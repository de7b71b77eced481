// SPDX-License-Identifier: Apache-2.0
#include "bulk/measure.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tc::bench {

namespace {

constexpr std::array<std::string_view, 9> names{"flags", "call", "reply",      "copy",       "am",
                                                "raw",   "aes",  "plain-call", "plain-reply"};

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

std::string_view mode_name(BulkMode mode) noexcept { return names[static_cast<size_t>(mode)]; }

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
    case BulkMode::flags: return pong(flags, rounds);
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

Result<double> measure_flags(BulkPeers& peers, uint64_t rounds) { return ping(peers.floor.memory->flags(), rounds); }

namespace {

constexpr size_t record_bytes = 16384;

const unsigned char* chars(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* chars(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }

std::unexpected<Error> failed() { return fail(TC_ERR_INTERNAL, "OpenSSL cannot encrypt by AES-128-GCM"); }

}  // namespace

void AesGcm::Free::operator()(evp_cipher_ctx_st* context) const noexcept { EVP_CIPHER_CTX_free(context); }

Result<std::unique_ptr<AesGcm>> AesGcm::create() {
  std::unique_ptr<AesGcm> made(new AesGcm);
  made->context_.reset(EVP_CIPHER_CTX_new());
  const std::array<unsigned char, 16> key{1, 2, 3};  // nothing secret is encrypted
  if (made->context_ == nullptr ||
      EVP_EncryptInit_ex(made->context_.get(), EVP_aes_128_gcm(), nullptr, key.data(), nullptr) != 1)
    return failed();
  return made;
}

Status AesGcm::seal(ByteView bytes, std::span<std::byte> into) {
  auto* const context = context_.get();
  for (size_t at = 0; at < bytes.size(); at += record_bytes) {
    const auto size = static_cast<int>(std::min(record_bytes, bytes.size() - at));
    std::array<unsigned char, 12> nonce{};
    std::memcpy(nonce.data(), &++records_, sizeof records_);
    std::array<unsigned char, 16> tag;
    int written = 0, rest = 0;
    if (EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) != 1 ||
        EVP_EncryptUpdate(context, chars(into.data()) + at, &written, chars(bytes.data()) + at, size) != 1 ||
        EVP_EncryptFinal_ex(context, chars(into.data()) + at + written, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, tag.size(), tag.data()) != 1)
      return failed();
  }
  return {};
}

Status serve_bulk(const Arguments& arguments, Talk& talk) {
  pin_to(1);
  TC_ASSIGN(const auto transport, BenchTransport::parse(arguments.at("transport")));
  BulkPeers peers(number_in(arguments, "largest"));
  TC_ASSIGN(peers.floor, Floor::offer(transport.by_network));
  TC_ASSIGN(peers.am, BulkAm::create(transport.ucx_tls, peers.landing));
  TC_ASSIGN(peers.node, BulkNode::create(transport, peers.data));
  if (transport.encrypted()) {
    TC_ASSIGN(peers.plain, BulkNode::create(transport.plain(), peers.data));
  }
  const auto meanwhile = [&] { (void)peers.poll(); };
  TC_ASSIGN(const auto am_address, peers.am->address());
  TC_ASSIGN(const auto source_am_address,
            talk.ask(fmt::format("{} {} {} {}", peers.node->address(), am_address, peers.floor.addresses(),
                                 peers.plain != nullptr ? peers.plain->address() : "none"),
                     meanwhile));
  TC_CHECK(peers.floor.accept());
  TC_CHECK(peers.am->connect(source_am_address));
  TC_CHECK(talk.say("connected"));
  const auto obey = [&](const std::string& order) -> Result<std::string> {
    std::string name;
    size_t size = 0;
    uint64_t rounds = 0;
    read_words(order, name, size, rounds);
    TC_ASSIGN(const auto mode, value_named<BulkMode>(names, name));
    TC_CHECK(talk.say("go"));
    TC_CHECK(answer_bulk(peers, mode, size, rounds));
    return "done";
  };
  return talk.serve(obey, meanwhile);
}

}  // namespace tc::bench
