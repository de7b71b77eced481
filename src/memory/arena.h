// SPDX-License-Identifier: Apache-2.0
//
// The memory of ifuncs' images. Text is executable and not writable. Data lies 64 MiB above it. Both have the same
// offset in their half, so every distance inside an image is the one that the linker assumed.
//
// A placement needs no system call while committed memory is free. The number of mappings does not grow with the number
// of images: with two mappings for each image, 32 000 images would reach `vm.max_map_count`.
//
// Thread: one at a time; any, when it is exported: code for another process is linked by more than one thread. Placements
// are plain values. The owner of a placement releases it once, before the arena is
// destroyed.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "memory/code_mapping.h"

namespace tc::memory {

// The free parts of an address range. take() uses the lowest part that fits, so that the high end empties and its
// memory can return to the system. give() joins neighbours.
class FreeRanges {
 public:
  // At first, all of [0, size) is free.
  explicit FreeRanges(size_t size);

  // The lowest free place for `size` bytes (not 0) at a multiple of `alignment` (a power of two). Nothing: no place is
  // free.
  std::optional<size_t> take(size_t size, size_t alignment);
  // Gives back a whole range of take().
  void give(size_t offset, size_t size) noexcept;

  // The number of separate free ranges.
  size_t pieces() const noexcept { return free_.size(); }

 private:
  std::map<size_t, size_t> free_;  // begin -> end, never touching each other
};

struct Placement {
  std::byte* text = nullptr;      // where the text half runs; image address 0
  std::byte* writable = nullptr;  // where to write it until it is sealed
  std::byte* data = nullptr;      // text + image_half
  size_t bytes = 0;               // taken from the arena
  size_t data_bytes = 0;
};

class Arena {
 public:
  enum class Kind {
    shared,    // images share mappings; falls back to `separate` where the system forbids executable memfds, or an
               // emulator would run old code (new_code_runs())
    separate,  // each image has mappings of its own
    exported,  // another process runs the code (memory/exported_memory.h), and this one cannot. There is one pair of halves.
               // Code pages that were used once are used again, but never returned to the system
  };
  // TC_ERR_UNSUPPORTED when code cannot run in another process on this system; TC_ERR_NO_MEMORY.
  static Result<std::unique_ptr<Arena>> create(Kind kind);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Takes room for an image. `alignment` is a power of two up to 4096. Both halves hold unspecified bytes.
  // TC_ERR_TOO_LARGE above image_half, TC_ERR_NO_MEMORY, also when an exported arena is full.
  Result<Placement> place(size_t text_bytes, size_t data_bytes, size_t alignment);
  // Call after the text was written and before it runs.
  Status seal(const Placement& placement);
  // Overwrites the text with traps and takes the room back. No thread may be running it, in any process.
  void release(const Placement& placement) noexcept;
  // Commits memory for the next placements. Cheap when there is enough.
  void prepare() noexcept;

  Kind kind() const noexcept { return kind_; }
  // Of an exported arena: what the other process maps. Its descriptors are valid as long as the arena.
  ExportedMemory exported() const noexcept;
  size_t used_bytes() const noexcept { return used_; }            // by placements
  size_t committed_bytes() const noexcept { return committed_; }  // given by the system for text

 private:
  struct Region;
  explicit Arena(Kind kind);
  std::unique_lock<std::mutex> lock() noexcept;
  Result<Placement> place_in(Region& region, size_t offset, size_t bytes, size_t data_bytes);
  Status commit(Region& region, size_t offset, size_t bytes);
  void map_data_ahead() noexcept;
  void uncount(Region& region, size_t offset, size_t bytes) noexcept;

  Kind kind_;
  std::mutex mutex_;  // of an exported arena
  std::vector<std::unique_ptr<Region>> regions_;
  size_t used_ = 0;
  size_t committed_ = 0;
  size_t empty_chunks_ = 0;  // committed chunks that hold nothing
};

}  // namespace tc::memory
