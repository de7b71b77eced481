// SPDX-License-Identifier: Apache-2.0
#include "transport/handshake.h"

#include <sys/socket.h>

#include <array>
#include <new>

#include "transport/greeting.h"

namespace tc::transport {

void Handshake::progress() noexcept {
  if (is_computed_) return;
  Status result;
  try {
    result = exchange();
  } catch (const std::bad_alloc&) {
    result = std::unexpected(Error{TC_ERR_NO_MEMORY, "no memory"});
  }
  if (!result) owner_.on_handshake(std::move(result));
}

// Sends what the last step made, and receives what the next one needs. The side that connects begins without.
Status Handshake::exchange() {
  TC_CHECK(stream_.push());
  if (role_ == trust::TlsRole::client && !has_started_) return compute();
  if (role_ == trust::TlsRole::client) TC_CHECK(check_first_bytes());
  auto got = stream_.pull(trust::TlsSession::max_handshake_bytes);
  if (!got && role_ == trust::TlsRole::client && got.error().code == TC_ERR_DISCONNECTED)
    return fail(TC_ERR_LIMIT, "it ended the connection in the encrypted handshake, as a node does that has no room: {}",
                got.error().message);
  if (!got) return context("in the encrypted handshake", std::move(got).error());
  if (*got != 0) return compute();
  owner_.watch_for_handshake(EPOLLIN | (stream_.has_unsent() ? EPOLLOUT : 0u));
  return {};
}

Status Handshake::compute() {
  const auto urgency = role_ == trust::TlsRole::server && !has_started_ ? HandshakeWorker::Urgency::newcomer
                                                                        : HandshakeWorker::Urgency::begun;
  has_started_ = is_computed_ = true;
  owner_.watch_for_handshake(0);
  return worker_.submit(stream_.take_session(), *this, urgency);
}

// A node that has no room for us says so before any handshake. Nobody has signed that, so it only makes a better message.
Status Handshake::check_first_bytes() const {
  std::array<std::byte, 4096> bytes;
  const auto got = ::recv(stream_.socket().get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_PEEK);
  if (got <= 0 || bytes[0] != std::byte{'T'}) return {};
  const auto refusal = decode_greeting(ByteView(bytes).first(static_cast<size_t>(got)));
  if (refusal) return fail(TC_ERR_MALFORMED, "it answered without encryption");
  return fail(refusal.error());
}

void Handshake::on_step(std::unique_ptr<trust::TlsSession> session, Result<bool> complete) noexcept {
  is_computed_ = false;
  has_answered_ |= !session->to_send().empty();
  stream_.set_session(std::move(session));
  Status sent = stream_.push();  // after a failure: an alert that tells the peer
  if (!complete) return owner_.on_handshake(fail(std::move(complete).error()));
  if (*complete || !sent) return owner_.on_handshake(std::move(sent));
  progress();
}

}  // namespace tc::transport
