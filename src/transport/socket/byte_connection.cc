// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/byte_connection.h"

namespace tc::transport {

void ByteConnection::open_streams_on(Channel& channel, size_t least_room) {
  in_.open(least_room);
  out_.open(channel);
  channel_ = &channel;
}

void ByteConnection::shut_streams() noexcept {
  in_.shut();
  out_.shut();
}

void ByteConnection::end_sending(Error why) noexcept {
  if (sending_failure_) return;
  sending_failure_ = std::move(why);
  out_.discard();
  end_receiving();
}

// Frames that were received before the end are delivered first, the end with the next call.
bool ByteConnection::receive_frames() {
  if (is_paused_ || !in_.has_room()) return false;  // the owner has not read what came before
  auto got = in_.fill(*channel_);
  if (!got) {
    lose_at_end(std::move(got).error());
    return true;
  }
  if (*got != 0) deliver_frames();
  return *got != 0;
}

bool ByteConnection::receive_or_lose() noexcept {
  try {
    return is_open() && receive_frames();
  } catch (const std::bad_alloc&) {
    lose_without_memory();
    return true;
  }
}

}  // namespace tc::transport
