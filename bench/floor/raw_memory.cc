// SPDX-License-Identifier: Apache-2.0
#include "floor/raw_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace tc::bench {

struct RawMemory::Shared {
  alignas(128) uint64_t flags[2][16];  // each on lines of its own
  RawRing rings[2];
};

RawMemory::RawMemory(int fd, Shared* shared, Side side) noexcept
    : fd_(fd),
      shared_(shared),
      flags_(&shared->flags[static_cast<int>(side)][0], &shared->flags[1 - static_cast<int>(side)][0]),
      rings_(&shared->rings[static_cast<int>(side)], &shared->rings[1 - static_cast<int>(side)]) {}

RawMemory::~RawMemory() {
  (void)::munmap(shared_, sizeof(Shared));
  ::close(fd_);
}

Result<std::unique_ptr<RawMemory>> RawMemory::map(int fd, Side side) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory != MAP_FAILED) return std::unique_ptr<RawMemory>(new RawMemory(fd, static_cast<Shared*>(memory), side));
  const int error = errno;
  ::close(fd);
  return fail(TC_ERR_IO, "mapping {} bytes of shared memory: {}", sizeof(Shared), system_words(error));
}

Result<std::unique_ptr<RawMemory>> RawMemory::create() {
  const int fd = ::memfd_create("raw", MFD_CLOEXEC);
  if (fd < 0) return fail(TC_ERR_IO, "memfd_create: {}", system_words(errno));
  if (::ftruncate(fd, sizeof(Shared)) == 0) return map(fd, Side::creator);
  const int error = errno;
  ::close(fd);
  return fail(TC_ERR_IO, "{} bytes of shared memory: {}", sizeof(Shared), system_words(error));
}

Result<std::unique_ptr<RawMemory>> RawMemory::open(const std::string& address) {
  const int fd = ::open(address.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail(TC_ERR_IO, "{}: {}", address, system_words(errno));
  return map(fd, Side::opener);
}

std::string RawMemory::address() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }

}  // namespace tc::bench
