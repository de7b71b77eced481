// SPDX-License-Identifier: Apache-2.0
//
// For tests only: bytes that must never change. TC_UPDATE_GOLDEN=1 writes them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace tc::testing {

// `name` is a file below TC_GOLDEN_DIR.
inline void expect_golden(const std::string& name, const Bytes& ours) {
  const auto path = std::filesystem::path(TC_GOLDEN_DIR) / name;
  if (std::getenv("TC_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(write_file_atomically(path, ours));
  }
  const auto golden = read_file(path, 1 << 20);
  ASSERT_TRUE(golden) << golden.error().message;
  const auto differ = std::ranges::mismatch(*golden, ours);
  EXPECT_EQ(*golden, ours) << name << " differs from byte " << differ.in1 - golden->begin();
}

}  // namespace tc::testing
