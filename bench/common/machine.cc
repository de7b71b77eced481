// SPDX-License-Identifier: Apache-2.0
#include "common/machine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/clock.h"
#include "common/report.h"

namespace tc::bench {

namespace {

// This process's arguments: benchmarks sit behind a command-line parser that does not hand them on.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command, argument;
  for (bool first = true; std::getline(file, argument, '\0'); first = false)
    command += first ? "ifunc" : " " + shell_quoted(argument);
  return command;
}

std::string utc_now() {
  const std::time_t now = wall_clock_s();
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// The value of the first line of /proc/cpuinfo with this key; keys differ between architectures.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos && line.compare(0, line.find_last_not_of(" \t:", colon) + 1, key) == 0)
      return line.substr(colon + 2);
  }
  return {};
}

std::string first_line(const char* path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

std::array<double, 3> load_average() {
  std::array<double, 3> load{};
  if (getloadavg(load.data(), 3) != 3) load = {};
  return load;
}

std::string kernel() {
  utsname name{};
  return uname(&name) == 0 ? std::string(name.sysname) + " " + name.release + " " + name.machine : std::string();
}

}  // namespace

std::string shell_quoted(const std::string& argument) {
  const auto plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string::npos) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Machine describe_machine(const std::string& ucx_version) {
  Machine m;
  m.command = command_line();
  m.date = utc_now();
  m.cpu = cpuinfo("model name");
  m.cores = usable_cpus();
  m.virtualized = (" " + cpuinfo("flags") + " ").find(" hypervisor ") != std::string::npos;
  m.kernel = kernel();
  m.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  m.ucx = ucx_version;
  m.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  m.load_before = load_average();
  return m;
}

nlohmann::ordered_json json_head(const char* bench, const std::string& transport, const Machine& machine, int runs) {
  return {{"bench", bench}, {"transport", transport}, {"ucx", machine.ucx}, {"runs", runs}};
}

void put_machine(nlohmann::ordered_json& root, Machine machine) {
  machine.load_after = load_average();
  root["command"] = machine.command;
  root["machine"] = {{"date", machine.date},
                     {"cpu", machine.cpu},
                     {"cores", machine.cores},
                     {"virtualized", machine.virtualized},
                     {"kernel", machine.kernel},
                     {"memory_bytes", machine.memory_bytes},
                     {"ucx", machine.ucx},
                     {"governor", machine.governor},
                     {"load_before", machine.load_before},
                     {"load_after", machine.load_after}};
}

int usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int usable_cpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) return cpu;
  return -1;
}

bool pin_to(int index) { return pin_to_cpu(usable_cpu(index)); }

bool pin_to_cpu(int cpu) {
  if (cpu < 0) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

namespace {

constexpr int most_caches = 8;  // that the system lists for one CPU

// Is `cpu` in a list as "0-3,8"?
bool holds(const std::string& list, int cpu) {
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = -1, last = -1;
    const char* const end = range.data() + range.size();
    const auto* const dash = std::from_chars(range.data(), end, first).ptr;
    if (dash == end || std::from_chars(dash + 1, end, last).ec != std::errc{}) last = first;
    if (first <= cpu && cpu <= last) return true;
  }
  return false;
}

int lowest_shared_cache(int one, int other) {
  int lowest = 0;
  for (int cache = 0; cache < most_caches; ++cache) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", one, cache);
    int level = 0;
    std::string cpus;
    if (!(std::ifstream(folder + "/level") >> level) || !(std::ifstream(folder + "/shared_cpu_list") >> cpus)) continue;
    if (holds(cpus, other) && (lowest == 0 || level < lowest)) lowest = level;
  }
  return lowest;
}

}  // namespace

Placement describe_placement() {
  Placement placement{.cpus = {usable_cpu(0), usable_cpu(1)}};
  placement.shared_cache_level = lowest_shared_cache(placement.cpus[0], placement.cpus[1]);
  return placement;
}

void Placement::set_flags(const std::vector<double>& runs) {
  flag_ns = summarize(runs);
  least_flag_ns = runs.empty() ? 0 : std::ranges::min(runs);
}

const char* Placement::verdict() const noexcept {
  if (least_flag_ns >= far_ns) return "far";
  return flag_ns.high < far_ns ? "near" : "mixed";
}

std::string format_placement(const Placement& p) {
  const auto cache = p.shared_cache_level != 0 ? fmt::format("share an L{} cache", p.shared_cache_level)
                                               : std::string("share no cache");
  return fmt::format(
      "CPUs {} and {} {} (as the system says) and are {}: two flags take {:.1f} ns [{:.1f}, {:.1f}], {:.1f} at "
      "best",
      p.cpus[0], p.cpus[1], cache, p.verdict(), p.flag_ns.median, p.flag_ns.low, p.flag_ns.high, p.least_flag_ns);
}

void put_placement(Json& root, const Placement& placement) {
  auto& object = root["placement"];
  object["cpus"] = placement.cpus;
  object["shared_cache_level"] = placement.shared_cache_level;
  put(object, "flag_latency_ns", placement.flag_ns);
  object["least_flag_latency_ns"] = placement.least_flag_ns;
  object["verdict"] = placement.verdict();
}

}  // namespace tc::bench
