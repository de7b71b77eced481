// SPDX-License-Identifier: Apache-2.0
//
// The plain TCP sockets on which peers find each other. None of these calls blocks, but for the look-up of a
// host's name.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tc::transport {

// A file descriptor that closes itself.
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

// "ADDRESS:PORT", with IPv6 addresses in brackets. TC_ERR_INVALID, TC_ERR_NOT_FOUND, TC_ERR_IO.
Result<Fd> listen_socket(std::string_view address);
// Starts to connect; when the socket becomes writable, socket_error() says how it ended.
Result<Fd> connect_socket(std::string_view address);
// A peer that waits at the listener; an invalid Fd when there is none.
Fd accept_socket(const Fd& listener) noexcept;
int socket_error(const Fd& socket) noexcept;
// "127.0.0.1:7001": our end of the socket, and the other one.
std::string local_name(const Fd& socket);
std::string remote_name(const Fd& socket);
// The system's words for an errno.
std::string system_words(int error);

}  // namespace tc::transport
