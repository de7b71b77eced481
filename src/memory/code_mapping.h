// SPDX-License-Identifier: Apache-2.0
//
// Memory for code that is never writable and executable at one address (W^X). Two ways to have it:
//
//  - CodeMapping: a pair of halves of 64 MiB, mapped once for thousands of images. The code half is a memfd mapped
//    twice, read+execute where it runs and read+write elsewhere; the data half lies image_half above it. Loading an
//    image is then a memcpy, without a system call.
//  - LoneMapping: one image in mappings of its own, written first and made executable after. For systems that forbid
//    the first way, and for code that is loaded once (the source's).
//
// Pages are given to a CodeMapping, and taken from it, in chunks.
//
// Thread: one at a time for one mapping.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "wire/object_format.h"

namespace tc::memory {

// The distance between the text half and the data half of every image.
using object_format::image_half;
// Steps in which memory is committed. Smaller ones cost system calls, larger ones resident memory at start.
inline constexpr size_t chunk_bytes = size_t{256} * 1024;

class CodeMapping {
 public:
  // TC_ERR_UNSUPPORTED when the system forbids executable memfds; TC_ERR_NO_MEMORY without address space.
  static Result<CodeMapping> create();
  CodeMapping(CodeMapping&& other) noexcept;
  CodeMapping& operator=(CodeMapping&&) = delete;
  ~CodeMapping();

  std::byte* code() const noexcept { return code_; }          // read and execute
  std::byte* writable() const noexcept { return writable_; }  // the same bytes, read and write
  std::byte* data() const noexcept { return code_ + image_half; }

  // Gives the chunk's code pages, filled with zeroes and mapped already. Data pages come by their first use: most
  // ifuncs have none, and those that have some share pages. TC_ERR_NO_MEMORY.
  Status commit(size_t chunk);
  // Maps the pages of this part of the data half before they are used. `offset` and `bytes` are multiples of 4 KiB. The
  // content stays as it is. Does nothing where the kernel is too old for it.
  void map_data(size_t offset, size_t bytes) noexcept;
  // Takes them away: the memory returns to the system and a stale call into the chunk faults.
  void decommit(size_t chunk) noexcept;
  bool committed(size_t chunk) const noexcept { return live_[chunk]; }

 private:
  CodeMapping() : live_(image_half / chunk_bytes) {}
  Status map();

  int memory_ = -1;
  std::byte* code_ = nullptr;
  std::byte* writable_ = nullptr;
  std::vector<bool> live_;  // chunks that have pages
};

// Makes the system map these pages, the first of which begins at `begin`, before they are used. Their content stays.
// False where it cannot: Linux before 5.14. Thread: any.
bool populate(void* begin, size_t bytes) noexcept;

// Plain addresses; freed by unmap_lone().
struct LoneMapping {
  std::byte* text = nullptr;  // writable until sealed, then executable
  std::byte* data = nullptr;  // null when there is none
  size_t text_bytes = 0, data_bytes = 0;
};
Result<LoneMapping> map_lone(size_t text_bytes, size_t data_bytes);
Status seal_lone(const LoneMapping& mapping);
void unmap_lone(const LoneMapping& mapping) noexcept;

}  // namespace tc::memory
