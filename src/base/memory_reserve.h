// SPDX-License-Identifier: Apache-2.0
//
// Memory that is set aside. When an allocation fails, it is returned to the system, so that the node can clean up after
// the failed operation and report it.
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
  // Call when allocations work again.
  void refill() noexcept {
    if (block_ == nullptr) block_.reset(new (std::nothrow) std::byte[size]);
  }

 private:
  static constexpr size_t size = size_t{256} * 1024;
  std::unique_ptr<std::byte[]> block_;
};

}  // namespace tc
