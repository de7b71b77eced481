// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that closes itself, and the system's words for an errno.
// Threads: any; one object is used by one thread.
#pragma once

#include <string>
#include <utility>

namespace tc {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  void reset() noexcept;
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "Connection refused"
std::string system_words(int error);

}  // namespace tc
