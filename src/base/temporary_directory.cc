// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>

namespace tc {

namespace fs = std::filesystem;

Result<TemporaryDirectory> TemporaryDirectory::create() {
  std::error_code error;
  auto base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  auto pattern = (base / "ifunc-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) return fail(TC_ERR_IO, "cannot create {}: {}", pattern, std::strerror(errno));
  return TemporaryDirectory(pattern);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace tc
