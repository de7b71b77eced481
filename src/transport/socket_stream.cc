// SPDX-License-Identifier: Apache-2.0
#include "transport/socket_stream.h"

#include <algorithm>

namespace tc::transport {

Result<size_t> SocketStream::send(ByteView bytes) {
  if (session_ == nullptr) return send_on(socket_, bytes);
  TC_CHECK(push());
  if (has_unsent()) return 0;
  TC_ASSIGN(const size_t taken, session_->write(bytes));
  TC_CHECK(push());
  return taken;
}

Status SocketStream::push() {
  while (has_unsent()) {
    TC_ASSIGN(const size_t sent, send_on(socket_, session_->to_send()));
    if (sent == 0) return {};
    session_->sent(sent);
  }
  return {};
}

Result<size_t> SocketStream::pull(size_t most) {
  const auto room = session_->room();
  TC_ASSIGN(const size_t got, receive_on(socket_, room.first(std::min(room.size(), most))));
  session_->received(got);
  return got;
}

// Takes no more from the socket than `into` has room for, so that nothing stays in the session of which the socket does
// not tell any more. A small `into` cannot have that: it is used for greetings, which come before.
Result<size_t> SocketStream::receive(std::span<std::byte> into) {
  if (session_ == nullptr) return receive_on(socket_, into);
  if (session_->has_more()) {
    TC_ASSIGN(const size_t had, session_->read(into));
    if (had != 0) return had;
  }
  constexpr size_t held = trust::TlsSession::max_held_bytes;
  TC_ASSIGN(const size_t got, pull(into.size() >= least_room ? into.size() - held : held));
  return got != 0 ? session_->read(into) : 0;
}

Status SocketStream::send_at_once(ByteView message) {
  TC_ASSIGN(const size_t sent, send(message));
  if (sent == message.size() && !has_unsent()) return {};
  return fail(TC_ERR_DISCONNECTED, "it takes no more bytes");
}

Bytes SocketStream::finish(Bytes unsent) {
  if (session_ == nullptr) return unsent;
  Bytes all;
  const auto add = [&] {
    const auto sealed = session_->to_send();
    all.insert(all.end(), sealed.begin(), sealed.end());
    session_->sent(sealed.size());
  };
  add();
  for (ByteView rest = unsent; !rest.empty();) {
    const auto taken = session_->write(rest);
    if (!taken || *taken == 0) break;
    rest = rest.subspan(*taken);
    add();
  }
  session_->end();
  add();
  return all;
}

}  // namespace tc::transport
