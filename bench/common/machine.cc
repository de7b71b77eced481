// SPDX-License-Identifier: Apache-2.0
#include "common/machine.h"

#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "common/pinning.h"

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

}  // namespace tc::bench
