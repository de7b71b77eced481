// SPDX-License-Identifier: Apache-2.0
#include "memory/testing/other_process.h"

#include <sys/wait.h>

#include <csignal>

namespace tc::memory::testing {

int in_other_process(const ExportedMemory& memory, FunctionRef<void()> body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGTRAP, SIGILL}) std::signal(signal, SIG_DFL);  // not a sanitizer's
    munmap(reinterpret_cast<void*>(memory.address), 2 * memory.half_bytes);  // what this process has there
    if (!map_exported(memory)) _exit(could_not_map);
    body();
    _exit(0);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace tc::memory::testing
