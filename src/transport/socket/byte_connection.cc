// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/byte_connection.h"

namespace tc::transport {

void ByteConnection::open_streams_on(Channel& channel) {
  in_.open();
  out_.open(channel);
  channel_ = &channel;
}

void ByteConnection::shut_streams() noexcept {
  in_.shut();
  out_.shut();
}

// What was received before the end is told before the end is.
bool ByteConnection::take_in() {
  if (!in_.has_room()) return false;  // its owner is behind
  auto got = in_.fill(*channel_);
  if (!got) {
    lose(std::move(got).error());
    return true;
  }
  if (*got != 0) deliver_frames();
  return *got != 0;
}

bool ByteConnection::take_in_safely() noexcept {
  try {
    return is_open() && take_in();
  } catch (const std::bad_alloc&) {
    lose_for_memory();
    return true;
  }
}

}  // namespace tc::transport
