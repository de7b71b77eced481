// SPDX-License-Identifier: Apache-2.0
//
// Memory for code that is never writable and executable at one address (W^X). There are two forms:
//
//  - CodeMapping: a pair of halves of 64 MiB, mapped once for thousands of images. The code half is a memfd mapped
//    twice, read+execute where it runs and read+write elsewhere; the data half lies image_half above it. Loading an
//    image is then a memcpy, without a system call. Another process can be the one that runs it (move_out()).
//  - LoneMapping: one image in mappings of its own, which are written first and then made executable. It is for systems
//    that forbid the first form, and for code that a source loads for itself.
//
// A CodeMapping gets pages, and gives them back, in chunks.
//
// Thread: one at a time for one mapping.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "memory/exported_memory.h"
#include "wire/object_format.h"

namespace tc::memory {

// The distance between the text half and the data half of every image.
using object_format::image_half;
// The step in which memory is committed. A smaller one costs system calls, a larger one costs resident memory at start.
inline constexpr size_t chunk_bytes = size_t{256} * 1024;

class CodeMapping {
 public:
  // TC_ERR_UNSUPPORTED when the system forbids executable memfds; TC_ERR_NO_MEMORY without address space.
  static Result<CodeMapping> create();
  CodeMapping(CodeMapping&& other) noexcept;
  CodeMapping& operator=(CodeMapping&&) = delete;
  ~CodeMapping();

  // Call it before anything lies in it. The code then runs in another process: here it can be read, and not executed. Both
  // halves are memfds, sealed so that nobody can change their size, and nobody but this mapping can write the code. The
  // system allocates data in allocate_data(). TC_ERR_UNSUPPORTED: Linux before 5.1 has no such seal. TC_ERR_NO_MEMORY.
  Status move_out();
  bool is_out() const noexcept { return data_memory_ >= 0; }
  // After move_out().
  ExportedMemory exported() const noexcept;

  std::byte* code() const noexcept { return code_; }          // read and execute
  std::byte* writable() const noexcept { return writable_; }  // the same bytes, read and write
  std::byte* data() const noexcept { return code_ + image_half; }

  // Allocates the code pages of the chunk, filled with zeroes, and maps them. The kernel maps data pages at their first
  // use, because most ifuncs have no data. TC_ERR_NO_MEMORY.
  Status commit(size_t chunk);
  // Maps the pages of this part of the data half before they are used. `offset` and `bytes` are multiples of 4 KiB. The
  // content does not change. Does nothing on a kernel that is too old.
  void map_data(size_t offset, size_t bytes) noexcept;
  // After move_out(): allocates this part of the data half, so that a full system gives an error here, and not a signal at
  // the first write. TC_ERR_NO_MEMORY.
  Status allocate_data(size_t offset, size_t bytes);
  // Returns the pages of the chunk to the system. A stale call into the chunk then faults. False: the code pages stay
  // committed, for nobody can take them out of a file whose writing is sealed.
  bool decommit(size_t chunk) noexcept;
  bool committed(size_t chunk) const noexcept { return live_[chunk]; }

 private:
  CodeMapping() : live_(image_half / chunk_bytes) {}
  Status map();
  Status share_data();

  int memory_ = -1;
  int data_memory_ = -1;  // after move_out()
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

// ---- Instruction caches, and a probe for emulators that do not notice new code.
//
// We write code at one address and run it at another, possibly where older code ran before. A processor runs the new
// code once its instruction cache is synchronized. A user-mode emulator keeps translated code, and notices new code
// only at the address where it is written. QEMU before 8.1 runs the old code then (docs/heterogeneous.md).
//
// Threads: any.

// Makes `bytes` at `begin` ready to run after they were written, here or at another address of the same memory. Does
// nothing on x86-64, whose instruction caches are coherent.
void sync_instructions(std::byte* begin, size_t bytes) noexcept;

// Call it before another thread runs code that this thread synchronized. The other thread's processor may have fetched
// the old bytes; on Arm and RISC-V, software must make it fetch again. Does nothing on x86-64.
void sync_other_threads() noexcept;

// Runs two tiny functions after each other in the first bytes of a mapping. True: both ran. The bytes are zero
// afterwards. `code` is where the memory executes, `writable` is where it is written.
bool new_code_runs(std::byte* code, std::byte* writable) noexcept;

}  // namespace tc::memory
