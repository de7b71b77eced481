// SPDX-License-Identifier: Apache-2.0
//
// The memory of a connection through shared memory: two rings in one sealed memfd. There is no name by which anybody
// else could open it; it is handed over on a Unix socket.
//
// The seals forbid to shrink the file, which would make touching it a SIGBUS. They do not forbid to punch holes, whose
// bytes read as zero.
//
// Thread: any.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "transport/ring/ring.h"

namespace tc::transport {

class RingMemory {
 public:
  // Of the two rings, the one that the side which created the memory writes to.
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
  // The mapping stays; nobody else needs the descriptor any more.
  void close_descriptor() noexcept { descriptor_.reset(); }

 private:
  Status map(size_t bytes);
  void unmap() noexcept;

  Fd descriptor_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;  // of each ring
};

}  // namespace tc::transport
