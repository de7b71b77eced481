// SPDX-License-Identifier: Apache-2.0
#include "transport/network/pending_peer.h"

#include <sys/socket.h>

#include <cerrno>
#include <new>

#include "transport/address.h"
#include "transport/network/pending_limits.h"
#include "transport/origin.h"

namespace tc::transport {

namespace {

constexpr std::byte tls_handshake{0x16};  // the first byte of a ClientHello; a plain greeting begins with 'T'

}  // namespace

PendingPeer::PendingPeer(Hub& hub, Owner& owner, Fd socket, Origin origin, uint64_t deadline)
    : hub_(hub),
      owner_(owner),
      deadline_ns_(deadline),
      counted_host_(origin.same_user ? std::string() : transport::counted_host(origin.host)),
      stage_(origin.is_local ? Stage::greeting : Stage::first_byte),
      peer_{SocketStream(std::move(socket)), std::move(origin), {}, {}} {}

PendingPeer::~PendingPeer() { hub_.poller.remove(peer_.stream.socket()); }

Status PendingPeer::start() { return hub_.poller.add(peer_.stream.socket(), *this, watched_); }

GreetedPeer PendingPeer::take() noexcept {
  if (stage_ == Stage::handshake && can_be_told()) (void)peer_.stream.take_session();  // to be told in plain
  stage_ = Stage::ended;
  handshake_.reset();
  hub_.poller.remove(peer_.stream.socket());
  return std::move(peer_);
}

void PendingPeer::watch(uint32_t events) noexcept {
  if (watched_ == events) return;
  watched_ = events;
  hub_.poller.change(peer_.stream.socket(), *this, events);
}

template <class Step>
void PendingPeer::run(Step step) noexcept {
  if (has_ended()) return;
  try {
    if (auto went = step(); !went) owner_.on_failed(*this, went.error());
  } catch (const std::exception& problem) {
    owner_.on_failed(*this, Error{TC_ERR_NO_MEMORY, problem.what()});
  }
}

void PendingPeer::on_ready(uint32_t) noexcept {
  run([this] { return progress(); });
}

Status PendingPeer::progress() {
  if (stage_ == Stage::first_byte) return judge_first_byte();
  if (stage_ == Stage::handshake) return handshake_->progress(), Status{};
  return stage_ == Stage::greeting ? continue_greeting() : Status{};
}

// The byte stays in the socket.
Status PendingPeer::judge_first_byte() {
  std::byte first{};
  const auto got = ::recv(peer_.stream.socket().get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (would_block(got)) return {};
  if (got < 0) return fail(TC_ERR_DISCONNECTED, "{}", system_words(errno));
  if (got == 0) return fail(TC_ERR_DISCONNECTED, "it ended the connection before it greeted");
  if (first == tls_handshake) return begin_handshake();
  if (needs_encryption(peer_.origin))
    return fail(TC_ERR_DENIED,
                "this node takes only encrypted connections from {}; its operator can allow plain ones from there with "
                "trust-network={}",
                peer_.origin.host, peer_.origin.host);
  TC_CHECK(owner_.may_connect(peer_.origin));
  stage_ = Stage::greeting;
  return continue_greeting();
}

Status PendingPeer::begin_handshake() {
  TC_ASSIGN(auto session, hub_.make_session(trust::TlsRole::server));
  peer_.stream.set_session(std::move(session));
  stage_ = Stage::handshake;
  handshake_.emplace(hub_.handshakes, peer_.stream, trust::TlsRole::server, static_cast<Handshake::Owner&>(*this))
      .progress();
  return {};
}

void PendingPeer::on_handshake(Status result) noexcept {
  handshake_.reset();
  run([&]() -> Status {
    TC_CHECK(std::move(result));
    stage_ = Stage::greeting;
    peer_.origin.key = peer_.stream.session()->peer_key();
    peer_.origin.is_key_temporary = peer_.stream.session()->is_peer_key_temporary();
    TC_CHECK(owner_.may_connect(peer_.origin));
    watch(EPOLLIN);
    return continue_greeting();
  });
}

Status PendingPeer::continue_greeting() {
  TC_CHECK(greeter_.progress(peer_.stream));
  if (!greeter_.has_received()) return {};
  peer_.greeting = std::move(greeter_.received());
  peer_.descriptor = greeter_.take_descriptor();
  owner_.on_greeted(*this);
  return {};
}

}  // namespace tc::transport
