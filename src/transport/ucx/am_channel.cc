// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/am_channel.h"

#include <algorithm>

#include "transport/ucx/fabric.h"

namespace tc::transport {

Result<size_t> AmChannel::take(std::span<std::byte> into, uint64_t) {
  const auto bytes = ByteView(inbox_).subspan(read_).first(std::min(into.size(), inbox_.size() - read_));
  std::ranges::copy(bytes, into.begin());
  read_ += bytes.size();
  return bytes.size();
}

Status AmChannel::on_bytes(ByteView bytes) {
  const size_t waiting = inbox_.size() - read_;
  if (bytes.size() > fabric_.window() - waiting)
    return fail(TC_ERR_LIMIT, "it sent {} bytes when {} wait already and {} are its limit", bytes.size(), waiting,
                fabric_.window());
  if (waiting == 0 || read_ >= fabric_.window()) {
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<ptrdiff_t>(read_));
    read_ = 0;
  }
  inbox_.insert(inbox_.end(), bytes.begin(), bytes.end());
  return {};
}

}  // namespace tc::transport
