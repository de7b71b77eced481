// SPDX-License-Identifier: Apache-2.0
#include "transport/ring/ring_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/ring/ring_in.h"

namespace tc::transport {

namespace {

constexpr size_t page = 4096;  // each ring begins on one of its own

constexpr size_t half_bytes(size_t ring_bytes) noexcept {
  return (ring_memory_bytes(ring_bytes) + page - 1) / page * page;
}

}  // namespace

RingMemory::RingMemory(RingMemory&& other) noexcept { *this = std::move(other); }

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<RingMemory> RingMemory::create(size_t bytes) {
  RingMemory made;
  made.descriptor_ = Fd(memfd_create("threechains-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.descriptor_) return fail(TC_ERR_IO, "creating memory to share with a peer: {}", system_words(errno));
  const int fd = made.descriptor_.get();
  if (ftruncate(fd, static_cast<off_t>(2 * half_bytes(bytes))) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(TC_ERR_NO_MEMORY, "{} bytes to share with a peer: {}", 2 * half_bytes(bytes), system_words(errno));
  TC_CHECK(made.map(bytes));
  RingIn::start(made.written_by(Side::creator));
  RingIn::start(made.written_by(Side::receiver));
  return made;
}

Result<RingMemory> RingMemory::adopt(Fd descriptor, size_t bytes) {
  if (!ring_size_is_valid(bytes))
    return fail(TC_ERR_MALFORMED, "it offers rings of {} bytes when a power of two from {} to {} is taken", bytes,
                min_ring_bytes, max_ring_bytes);
  struct stat file{};
  struct statfs system{};
  const int fd = descriptor.get();
  const int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1;
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
    return fail(TC_ERR_MALFORMED, "it offers memory whose size is not sealed");
  if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC || fstat(fd, &file) != 0)
    return fail(TC_ERR_MALFORMED, "it offers something that is not shared memory");
  if (file.st_size != static_cast<off_t>(2 * half_bytes(bytes)))
    return fail(TC_ERR_MALFORMED, "it offers {} bytes of memory when two rings of {} take {}", file.st_size, bytes,
                2 * half_bytes(bytes));
  RingMemory made;
  made.descriptor_ = std::move(descriptor);
  TC_CHECK(made.map(bytes));
  return made;
}

Status RingMemory::map(size_t bytes) {
  void* const memory = mmap(nullptr, 2 * half_bytes(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (memory == MAP_FAILED)
    return fail(TC_ERR_NO_MEMORY, "mapping {} bytes shared with a peer: {}", 2 * half_bytes(bytes),
                system_words(errno));
  memory_ = memory;
  bytes_ = bytes;
  return {};
}

void RingMemory::unmap() noexcept {
  if (memory_ != nullptr) munmap(memory_, 2 * half_bytes(bytes_));
  memory_ = nullptr;
}

RingView RingMemory::written_by(Side side) const noexcept {
  auto* const first = static_cast<std::byte*>(memory_);
  return RingView::at(side == Side::creator ? first : first + half_bytes(bytes_), bytes_);
}

}  // namespace tc::transport
