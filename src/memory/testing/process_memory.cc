// SPDX-License-Identifier: Apache-2.0
#include "memory/testing/process_memory.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace tc::memory::testing {

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++memory.mappings;
  std::ifstream pages("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  pages >> total >> resident;
  memory.resident_bytes = resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return memory;
}

}  // namespace tc::memory::testing
