// SPDX-License-Identifier: Apache-2.0
#include "ifunc/libexec.h"

#include <cstdlib>

namespace tc::command {

std::filesystem::path libexec_path(const char* name) {
  if (const char* directory = std::getenv("TC_LIBEXEC")) return std::filesystem::path(directory) / name;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path() / "libexec/threechains" / name;
}

}  // namespace tc::command
