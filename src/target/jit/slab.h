// SPDX-License-Identifier: Apache-2.0
//
// Where linked code lives: a few large stretches of address space, cut up here instead of by the kernel. A mapping
// for every ifunc would cost two of the 65 530 that a process may have, and 8 KiB at least; here the number of
// mappings depends on the bytes in use alone, and small pieces share pages.
//
// Memory is writable or executable, never both: code and constants are pages of a memory file that is mapped
// twice, once to run (or read) and once, elsewhere, to write. What was freed is overwritten with trapping
// instructions and goes back to the kernel in batches.
//
// Threads: any; calls may overlap.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"

namespace tc::target::jit {

// What a piece of memory may be used for, at the address it is used at.
enum class Use : uint8_t { code /* read, execute */, constants /* read */, data /* read, write */ };
inline constexpr size_t use_count = 3;

struct Need {
  size_t size = 0;
  size_t alignment = 1;  // a power of two
};

struct Piece {
  std::byte* address = nullptr;   // where it is used
  std::byte* writable = nullptr;  // where it is filled; the same address for data
  size_t size = 0;
};

class Slab;
class Slabs;

// Three pieces within 2 GiB of each other, as relocations want them. Freed when destroyed; keeps its slabs alive.
class Allocation {
 public:
  Allocation() = default;
  ~Allocation() { reset(); }
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept;

  const Piece& operator[](Use use) const noexcept { return pieces_[static_cast<size_t>(use)]; }
  size_t bytes() const noexcept;

 private:
  friend class Slabs;
  void reset() noexcept;

  std::shared_ptr<Slabs> owner_;
  Slab* slab_ = nullptr;
  std::array<Piece, use_count> pieces_{};
};

class Slabs : public std::enable_shared_from_this<Slabs> {
 public:
  // No piece can be larger or aligned more strictly: branches must reach from one end of a slab to the other.
  static constexpr size_t largest_piece = 512u * 1024 * 1024;
  static constexpr size_t largest_alignment = 2u * 1024 * 1024;

  static std::shared_ptr<Slabs> create();
  ~Slabs();

  // The data piece is zeroed. TC_ERR_TOO_LARGE over the limits above, TC_ERR_NO_MEMORY and TC_ERR_UNSUPPORTED (no
  // executable memory to be had) with the system's words.
  Result<Allocation> allocate(const std::array<Need, use_count>& needs);

  // Bytes that live allocations take, and slabs there are.
  size_t bytes() const noexcept;
  size_t slab_count() const noexcept;

 private:
  friend class Allocation;
  Slabs() = default;
  void release(Slab* slab, const std::array<Piece, use_count>& pieces) noexcept;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Slab>> slabs_;
};

}  // namespace tc::target::jit
