// SPDX-License-Identifier: Apache-2.0
//
// Memory that is set aside for when allocations fail. It is then returned to the system, so that the failed operation can
// be cleaned up and reported.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tc {

class MemoryReserve {
 public:
  MemoryReserve() noexcept { refill(); }
  void release() noexcept { block_.reset(); }
  // Call when things are well again.
  void refill() noexcept {
    if (block_ == nullptr) block_.reset(new (std::nothrow) std::byte[size]);
  }

 private:
  static constexpr size_t size = size_t{256} * 1024;
  std::unique_ptr<std::byte[]> block_;
};

}  // namespace tc
