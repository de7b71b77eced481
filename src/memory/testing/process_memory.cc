// SPDX-License-Identifier: Apache-2.0
#include "memory/testing/process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/fd.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace tc::memory::testing {

namespace {

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++memory.mappings;
  std::ifstream pages("/proc/self/statm");
  pages >> memory.mapped_bytes >> memory.resident_bytes;
  memory.mapped_bytes *= page_bytes();
  memory.resident_bytes *= page_bytes();
  return memory;
}

std::string protection_of(const std::byte* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char protection[4] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %3c", &begin, &end, protection) != 3) continue;
    if (begin <= address && address < end) return std::string(protection, 3);
  }
  return {};
}

bool is_resident(const std::byte* at) {
  unsigned char resident = 0;
  const auto begin = reinterpret_cast<uintptr_t>(at) / page_bytes() * page_bytes();
  return mincore(reinterpret_cast<void*>(begin), 1, &resident) == 0 && (resident & 1) != 0;
}

std::vector<int> open_descriptors() {
  std::vector<int> open;
  for (int number = 0; number < 256; ++number)
    if (fcntl(number, F_GETFD, 0) >= 0) open.push_back(number);
  return open;
}

bool system_runs_memfds() {
  const Fd file(memfd_create("probe", MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), 4096) != 0) return false;
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return false;
  munmap(at, 4096);
  return true;
}

bool system_seals_future_writes() {
  const Fd file(memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return file && fcntl(file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
}

}  // namespace tc::memory::testing
