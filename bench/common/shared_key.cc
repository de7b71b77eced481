// SPDX-License-Identifier: Apache-2.0
#include "common/shared_key.h"

#include <cstdlib>

#include "trust/key_file.h"

namespace tc::bench {

namespace {

constexpr const char* variable = "TC_BENCH_KEY_FILE";

}  // namespace

Result<SharedKey> SharedKey::make() {
  TC_ASSIGN(auto directory, TemporaryDirectory::create());
  const auto file = directory.file("key");
  TC_ASSIGN(const auto key, trust::KeyPair::fresh());
  TC_CHECK(trust::write_key_file(file, key));
  ::setenv(variable, file.c_str(), 1);
  return SharedKey(std::move(directory));
}

std::string shared_key_file() {
  const char* const file = std::getenv(variable);
  return file != nullptr ? file : "";
}

}  // namespace tc::bench
