// SPDX-License-Identifier: Apache-2.0
//
// One key for all nodes of a benchmark, in all its processes: nodes with the same key trust each other, so that the benchmark
// needs no keyring, and leaves the user's own keys alone. Thread: the main one.
#pragma once

#include <string>

#include "base/file.h"

namespace tc::bench {

// Made by the process that measures, before it starts others. They find it in the environment.
class SharedKey {
 public:
  static Result<SharedKey> make();

 private:
  explicit SharedKey(TemporaryDirectory directory) : directory_(std::move(directory)) {}
  TemporaryDirectory directory_;  // goes with it
};

// Empty: there is none.
std::string shared_key_file();

}  // namespace tc::bench
