// SPDX-License-Identifier: Apache-2.0
#include "target/jit/perf_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tc::target::jit {

void add_to_perf_map(uint64_t address, uint64_t size, std::string_view label, std::string_view function) {
  const auto path = fmt::format("/tmp/perf-{}.map", ::getpid());
  // Every user can write to that directory, so symbolic links are not followed.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  const auto line = fmt::format("{:x} {:x} {}:{}\n", address, size, label, function);
  // One write is one line, also when threads append at the same time.
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace tc::target::jit
