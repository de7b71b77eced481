// SPDX-License-Identifier: Apache-2.0
#include "base/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace tc {

std::filesystem::path own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  const auto path = std::filesystem::canonical(info.dli_fname, ignored);
  return path.parent_path();
}

std::filesystem::path own_program(const std::string& name) {
  if (const char* const folder = std::getenv("TC_LIBEXEC")) return std::filesystem::path(folder) / name;
  const auto above = own_folder().parent_path();
  const auto program = std::filesystem::path("libexec/threechains") / name;
  const auto is_program = [](const std::filesystem::path& path) { return ::access(path.c_str(), X_OK) == 0; };
  if (const auto other = above.parent_path() / program; !is_program(above / program) && is_program(other)) return other;
  return above / program;
}

namespace {

std::vector<std::string> places(const std::string& file, const std::string& wish) {
  if (!wish.empty()) return {wish};
  std::vector<std::string> all;
  if (const auto folder = own_folder(); !folder.empty()) {
    all.push_back((folder / file).string());
    all.push_back((folder / "threechains" / file).string());
    all.push_back((folder.parent_path() / "lib" / file).string());
  }
  all.push_back(file);
  return all;
}

}  // namespace

Result<void*> open_plugin(const std::string& file, const std::string& wish) {
  std::string tried;
  for (const auto& place : places(file, wish)) {
    if (void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* const words = dlerror();
    tried += fmt::format("{}{}", tried.empty() ? "" : "; ", words != nullptr ? words : place.c_str());
  }
  return fail(Error{TC_ERR_UNSUPPORTED, tried});
}

Result<void*> find_in_plugin(void* library, const std::string& function) {
  if (void* const found = dlsym(library, function.c_str())) return found;
  return fail(TC_ERR_UNSUPPORTED, "it has no function '{}': it is no plug-in of this program", function);
}

}  // namespace tc
