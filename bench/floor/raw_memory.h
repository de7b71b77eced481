// SPDX-License-Identifier: Apache-2.0
//
// What two processes on one host cost without any runtime: flags and rings in memory that both have mapped.
//
// Thread: one in each process.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "floor/raw_call.h"

namespace tc::bench {

// Two flags, one for each direction: the least that a message can cost.
class RawFlags {
 public:
  RawFlags(uint64_t* mine, const uint64_t* theirs) noexcept : mine_(mine), theirs_(theirs) {}
  void send() noexcept { __atomic_store_n(mine_, ++sent_, __ATOMIC_RELEASE); }
  void poll() noexcept { came_ = __atomic_load_n(theirs_, __ATOMIC_ACQUIRE); }
  uint64_t count() const noexcept { return came_; }
  Status status() const { return {}; }

 private:
  uint64_t* mine_;
  const uint64_t* theirs_;
  uint64_t sent_ = 0, came_ = 0;
};

// A ring of calls with one writer and one reader. A call's header holds its position, so the reader needs no index of
// the writer's; the reader publishes its own a few times in each lap.
struct RawRing {
  static constexpr uint64_t slots = 16384;  // 256 KiB, as much as a ring of ours

  alignas(128) uint64_t consumed;
  alignas(128) RawCall calls[slots];
};

class RawRings {
 public:
  RawRings(RawRing* out, RawRing* in) noexcept : out_(out), in_(in) {}

  void send() noexcept {
    while (sent_ - room_from_ == RawRing::slots) room_from_ = __atomic_load_n(&out_->consumed, __ATOMIC_ACQUIRE);
    RawCall& call = out_->calls[sent_ % RawRing::slots];
    call.payload = 1;
    __atomic_store_n(&call.header, ++sent_ << RawCall::index_bits | RawCall::increment, __ATOMIC_RELEASE);
  }
  // Runs the calls that came.
  void poll() noexcept;
  uint64_t count() const noexcept { return count_; }
  Status status() const { return {}; }

 private:
  RawRing* out_;
  RawRing* in_;
  uint64_t sent_ = 0, room_from_ = 0;
  uint64_t taken_ = 0, published_ = 0;
  uint64_t count_ = 0;
};

class RawMemory {
 public:
  // Memory that another process of this user can open by address().
  static Result<std::unique_ptr<RawMemory>> create();
  static Result<std::unique_ptr<RawMemory>> open(const std::string& address);
  ~RawMemory();
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;

  std::string address() const;
  RawFlags& flags() noexcept { return flags_; }
  RawRings& rings() noexcept { return rings_; }

 private:
  struct Shared;
  enum class Side : uint8_t { creator, opener };
  RawMemory(Fd fd, Shared* shared, Side side) noexcept;
  static Result<std::unique_ptr<RawMemory>> map(Fd fd, Side side);

  Fd fd_;
  Shared* shared_;
  RawFlags flags_;
  RawRings rings_;
};

}  // namespace tc::bench
