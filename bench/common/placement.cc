// SPDX-License-Identifier: Apache-2.0
#include "common/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "common/pinning.h"
#include "common/report.h"

namespace tc::bench {

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
