// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/bootstrap.h"

#include <cstdlib>

#include "node/bootstrap/directory.h"
#include "node/bootstrap/pmix_host.h"

namespace tc::node::bootstrap {

Status parse(std::string_view text, Options& options) {
  constexpr std::string_view directory = "dir:";
  if (text.starts_with(directory) && text.size() > directory.size()) {
    options.kind = Kind::directory;
    options.directory = text.substr(directory.size());
    return {};
  }
  if (text == "none")
    options.kind = Kind::none;
  else if (text == "auto")
    options.kind = Kind::automatic;
  else if (text == "pmix")
    options.kind = Kind::pmix;
  else
    return fail(TC_ERR_INVALID, "bootstrap is '{}' when it is none, auto, pmix or dir:PATH", text);
  return {};
}

bool launched_by_pmix() noexcept {
  return std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

Result<std::unique_ptr<Bootstrap>> make(const Options& options) {
  const auto kind = options.kind != Kind::automatic ? options.kind : launched_by_pmix() ? Kind::pmix : Kind::none;
  if (kind == Kind::none) return std::unique_ptr<Bootstrap>();
  if (kind == Kind::pmix) return open_pmix(options);
  if (options.nodes == 0)
    return fail(TC_ERR_INVALID, "bootstrap is dir:{} when nobody says how many nodes will come: set nodes",
                options.directory);
  return std::unique_ptr<Bootstrap>(std::make_unique<Directory>(options));
}

}  // namespace tc::node::bootstrap
