// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace tc {

void random_bytes(std::span<std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const auto got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (errno != EINTR) {
      std::perror("threechains: the system gives no random bytes");
      std::abort();
    }
  }
}

}  // namespace tc
