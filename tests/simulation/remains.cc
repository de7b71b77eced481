// SPDX-License-Identifier: Apache-2.0
#include "simulation/remains.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "simulation/memory.h"

namespace tc::simulation {

namespace {

uint64_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<uint64_t>(std::distance(begin(all), end(all)));
}

uint64_t executable_mappings() {
  uint64_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const auto rights = line.find(' ') + 1; line.size() > rights + 2 && line[rights + 2] == 'x') ++count;
  return count;
}

Status check(const char* what, uint64_t before, uint64_t later) {
  if (before == later) return {};
  return fail(TC_ERR_INTERNAL, "this process has {} {} after the end of the cluster when it had {} before", later, what,
              before);
}

}  // namespace

Remains Remains::now() {
  const auto descriptors = open_descriptors(), mappings = executable_mappings();
  return {living_allocations(), descriptors, mappings};
}

Status Remains::check(const Remains& later) const {
  TC_CHECK(simulation::check("allocations", allocations, later.allocations));
  TC_CHECK(simulation::check("descriptors", descriptors, later.descriptors));
  return simulation::check("executable mappings", code_mappings, later.code_mappings);
}

}  // namespace tc::simulation
