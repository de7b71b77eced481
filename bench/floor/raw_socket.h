// SPDX-License-Identifier: Apache-2.0
//
// What a TCP connection costs without any runtime: a non-blocking socket, whose reader polls it. One system call for
// each message where an answer is awaited; as many as fit into a buffer where messages follow each other.
//
// Thread: one in each process.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "floor/raw_call.h"

namespace tc::bench {

class RawSocket {
 public:
  // Where open() connects to: "127.0.0.1:41234".
  static Result<std::unique_ptr<RawSocket>> listen();
  std::string address() const;
  // Takes the connection that open() has made.
  Status accept();
  static Result<std::unique_ptr<RawSocket>> open(const std::string& address);

  // Small calls: written into a buffer, which leaves when it is full or with flush().
  void send() noexcept {
    RawCall& call = batch_[batched_++];
    call.header = RawCall::increment;
    call.payload = 1;
    if (batched_ == batch_.size()) flush();
  }
  void flush() noexcept;
  // Runs the calls that came.
  void poll() noexcept;
  uint64_t count() const noexcept { return count_; }

  // A stream of bytes. Each returns when all have left, or have come.
  Status write(ByteView bytes) noexcept;
  Status read(std::span<std::byte> into) noexcept;
  // Why send(), flush() and poll() no longer do anything.
  Status status() const;

 private:
  static constexpr size_t batch_calls = 4096;  // 64 KiB

  explicit RawSocket(Fd fd) : fd_(std::move(fd)) {}
  Status make_prompt();

  Fd fd_;  // listens until accept()
  std::array<RawCall, batch_calls> batch_{};
  std::array<RawCall, batch_calls> arrived_{};
  size_t batched_ = 0;        // calls
  size_t arrived_bytes_ = 0;  // of a call that came in part
  uint64_t count_ = 0;
  int error_ = 0;  // errno; -1: the other end closed
};

}  // namespace tc::bench
