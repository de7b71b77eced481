// SPDX-License-Identifier: Apache-2.0
//
// Where the images of ifuncs live: text where it can be executed and not written, data 64 MiB above it, both at the
// same offset in their half, so that every distance inside an image stays what the linker made it.
//
// A placement costs no system call as long as committed memory is free; the number of mappings does not grow with
// the number of images (two mappings for each image would meet `vm.max_map_count` at 32 000 images).
//
// Thread: one at a time. Placements are plain values: the owner of one releases it, once, before the arena is destroyed.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "memory/code_mapping.h"

namespace tc::memory {

class FreeRanges {
 public:
  // All of [0, size) is free.
  explicit FreeRanges(size_t size);

  // The lowest free place for `size` bytes (not 0) at a multiple of `alignment` (a power of two); nothing when there
  // is none.
  std::optional<size_t> take(size_t size, size_t alignment);
  // Gives back exactly what take() granted.
  void give(size_t offset, size_t size) noexcept;

  // In how many pieces the free bytes lie.
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
               // emulator would run old code (alias_probe.h)
    separate,  // each image has mappings of its own
  };
  static Result<std::unique_ptr<Arena>> create(Kind kind);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Room for an image. `alignment` is a power of two up to 4096. Both halves hold unspecified bytes.
  // TC_ERR_TOO_LARGE above image_half, TC_ERR_NO_MEMORY.
  Result<Placement> place(size_t text_bytes, size_t data_bytes, size_t alignment);
  // Call after the text was written and before it runs.
  Status seal(const Placement& placement);
  // Overwrites the text with traps and takes the room back. Nothing of it may be running.
  void release(const Placement& placement) noexcept;
  // Commits memory ahead of need, so that the next placements find it. Cheap when there is nothing to do.
  void prepare() noexcept;

  Kind kind() const noexcept { return kind_; }
  size_t used_bytes() const noexcept { return used_; }            // by placements
  size_t committed_bytes() const noexcept { return committed_; }  // given by the system for text

 private:
  struct Region;
  explicit Arena(Kind kind);
  Result<Placement> place_in(Region& region, size_t offset, size_t bytes, size_t data_bytes);
  Status commit(Region& region, size_t offset, size_t bytes);
  void map_data_ahead() noexcept;
  void uncount(Region& region, size_t offset, size_t bytes) noexcept;

  Kind kind_;
  std::vector<std::unique_ptr<Region>> regions_;
  size_t used_ = 0;
  size_t committed_ = 0;
  size_t empty_chunks_ = 0;  // committed chunks that hold nothing
};

}  // namespace tc::memory
