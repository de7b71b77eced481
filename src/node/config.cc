// SPDX-License-Identifier: Apache-2.0
#include "node/config.h"

#include <unistd.h>

#include <cstdlib>

#include "node/option_values.h"
#include "node/options.h"

namespace tc::node {

namespace {

std::string process_label() {
  char host[65] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return fmt::format("pid{}", ::getpid());
  return fmt::format("{}:{}", host, ::getpid());
}

}  // namespace

Config Config::defaults() {
  Config config;
  config.name = process_label();
  config.path.emplace_back(".");
  if (const char* path = std::getenv("TC_IFUNC_PATH"); path != nullptr)
    for (const auto& directory : split(path, ':')) config.path.emplace_back(directory);
  if (const char* name = std::getenv("TC_TRANSPORT"); name != nullptr)
    if (const auto choice = transport::parse_choice(name)) config.network.choice = *choice;
  return config;
}

Status Config::set(std::string_view key, std::string_view value) {
  std::string keys;
  for (const auto& option : options()) {
    if (option.name == key) {
      auto done = option.set(*this, value);
      return done ? Status{} : fail(done.error().code, "{} is {}", key, done.error().message);
    }
    keys += (keys.empty() ? "" : ", ") + std::string(option.name);
  }
  return fail(TC_ERR_INVALID, "there is no option '{}'; there are: {}", key, keys);
}

}  // namespace tc::node
