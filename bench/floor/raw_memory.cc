// SPDX-License-Identifier: Apache-2.0
#include "floor/raw_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace tc::bench {

struct RawMemory::Shared {
  alignas(128) uint64_t flags[2][16];  // each on lines of its own
  RawRing rings[2];
};

RawMemory::RawMemory(Fd fd, Shared* shared, Side side) noexcept
    : fd_(std::move(fd)),
      shared_(shared),
      flags_(&shared->flags[static_cast<int>(side)][0], &shared->flags[1 - static_cast<int>(side)][0]),
      rings_(&shared->rings[static_cast<int>(side)], &shared->rings[1 - static_cast<int>(side)]) {}

RawMemory::~RawMemory() { (void)::munmap(shared_, sizeof(Shared)); }

Result<std::unique_ptr<RawMemory>> RawMemory::map(Fd fd, Side side) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED)
    return fail(TC_ERR_IO, "mapping {} bytes of shared memory: {}", sizeof(Shared), system_words(errno));
  return std::unique_ptr<RawMemory>(new RawMemory(std::move(fd), static_cast<Shared*>(memory), side));
}

Result<std::unique_ptr<RawMemory>> RawMemory::create() {
  Fd fd(::memfd_create("raw", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), sizeof(Shared)) != 0)
    return fail(TC_ERR_IO, "{} bytes of shared memory: {}", sizeof(Shared), system_words(errno));
  return map(std::move(fd), Side::creator);
}

Result<std::unique_ptr<RawMemory>> RawMemory::open(const std::string& address) {
  Fd fd(::open(address.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return fail(TC_ERR_IO, "{}: {}", address, system_words(errno));
  return map(std::move(fd), Side::opener);
}

std::string RawMemory::address() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get()); }

void RawRings::poll() noexcept {
  for (uint64_t most = RawRing::slots / 8; most > 0; --most) {
    const RawCall& call = in_->calls[taken_ % RawRing::slots];
    const uint64_t header = __atomic_load_n(&call.header, __ATOMIC_ACQUIRE);
    if (header >> RawCall::index_bits != taken_ + 1) break;
    raw_table[header % raw_table.size()](&call.payload, &count_);
    ++taken_;
  }
  if (taken_ - published_ < RawRing::slots / 8) return;
  published_ = taken_;
  __atomic_store_n(&in_->consumed, taken_, __ATOMIC_RELEASE);
}

}  // namespace tc::bench
