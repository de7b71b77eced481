// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <unistd.h>

#include <system_error>

namespace tc {

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string system_words(int error) { return std::system_category().message(error); }

}  // namespace tc
