// SPDX-License-Identifier: Apache-2.0
//
// For tests: a channel that takes and gives what the test says.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "transport/socket/byte_stream.h"
#include "transport/testing/frames.h"

namespace tc::transport {

class TestChannel final : public Channel {
 public:
  Result<size_t> send(ByteView bytes) override {
    ++sends;
    if (end) return fail(*end);
    const size_t size = std::min({bytes.size(), room, most_at_once});
    sent.insert(sent.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    room -= size;
    return size;
  }
  Result<size_t> receive(std::span<std::byte> into) override {
    const size_t size = std::min({coming.size() - received, into.size(), most_at_once});
    if (size == 0 && end) return fail(*end);
    std::ranges::copy(ByteView(coming).subspan(received, size), into.begin());
    received += size;
    return size;
  }

  size_t most_at_once = SIZE_MAX;
  size_t room = SIZE_MAX;
  Bytes sent, coming;
  size_t received = 0;  // of `coming`
  int sends = 0;
  std::optional<Error> end;
};

}  // namespace tc::transport
