// SPDX-License-Identifier: Apache-2.0
//
// process_start_time() and add_process() of families.h.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "ifunc-metrics/families.h"

namespace tc::metrics {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// A file of /proc, which says that it has 0 bytes; those that are read here are short.
std::string content_of(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  char text[4096];
  const auto size = file ? ::read(file.get(), text, sizeof text) : -1;
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

// Number `index` of the numbers between blanks; 0 when there is none.
double number_in(std::string_view text, size_t index) {
  for (; index > 0; --index) text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return static_cast<double>(number);
}

}  // namespace

// The kernel has it in ticks since the start of the machine, as field 22; the second one, a name, may have blanks.
double process_start_time() {
  const auto stat = content_of("/proc/self/stat");
  const auto end_of_name = stat.rfind(')');
  if (end_of_name == stat.npos || stat.size() < end_of_name + 2) return 0;
  const double ticks = number_in(std::string_view(stat).substr(end_of_name + 2), 22 - 3);
  const double since_boot = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + since_boot;
}

namespace {

double open_descriptors() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error))
    ++count;
  return count > 0 ? count - 1 : 0;  // one is that of the folder itself
}

}  // namespace

void add_process(Families& families, double started) {
  auto& cpu = families.emplace_back("process_cpu_seconds_total", "CPU time of this process, in the kernel too.",
                                    prometheus::MetricType::Counter);
  cpu.metric.emplace_back().counter.value = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const auto pages = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const auto memory = content_of("/proc/self/statm");
  add_gauge(families, "process_virtual_memory_bytes", "Address space of this process.",
            memory.empty() ? 0 : number_in(memory, 0) * pages);
  add_gauge(families, "process_resident_memory_bytes", "Memory of this process.",
            memory.empty() ? 0 : number_in(memory, 1) * pages);
  add_gauge(families, "process_open_fds", "File descriptors that this process has open.", open_descriptors());
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  add_gauge(families, "process_max_fds", "File descriptors that this process may open.",
            static_cast<double>(limit.rlim_cur));
  add_gauge(families, "process_start_time_seconds", "When this process started, in seconds since 1970.", started);
}

}  // namespace tc::metrics
