// SPDX-License-Identifier: Apache-2.0
//
// The memory of a shared-memory connection: two rings in one sealed memfd. It has no name by which another process
// could open it; its descriptor is sent to the peer on a Unix socket.
//
// The seals forbid to shrink the file: reading beyond its end would be a SIGBUS. They do not forbid to punch holes, but
// the bytes of a hole read as zero.
//
// Thread: any.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "transport/ring/ring.h"

namespace tc::transport {

class RingMemory {
 public:
  // The two sides of the connection. Each writes to one ring and reads from the other.
  enum class Side : uint8_t { creator, receiver };

  RingMemory() = default;
  // Two empty rings of `bytes` each. TC_ERR_NO_MEMORY, TC_ERR_IO.
  static Result<RingMemory> create(size_t bytes);
  // Memory that a peer created. TC_ERR_MALFORMED when it is not what create() makes.
  static Result<RingMemory> adopt(Fd descriptor, size_t bytes);
  ~RingMemory() { unmap(); }
  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;

  RingView written_by(Side side) const noexcept;
  size_t bytes() const noexcept { return bytes_; }
  const Fd& descriptor() const noexcept { return descriptor_; }
  // The mapping stays. Call when the peer has the descriptor.
  void close_descriptor() noexcept { descriptor_.reset(); }

 private:
  Status map(size_t bytes);
  void unmap() noexcept;

  Fd descriptor_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;  // of each ring
};

}  // namespace tc::transport
