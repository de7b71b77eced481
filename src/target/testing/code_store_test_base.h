// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a code store of objects.
#pragma once

#include <gtest/gtest.h>

#include "target/code_store.h"
#include "target/testing/object_builder.h"

namespace tc::target {

class CodeStoreTest : public ::testing::Test {
 protected:
  CodeStore& store(CodeStoreOptions options = {}) {
    options.jit_plugin = "/nonexistent/plugin.so";  // these tests are about objects
    store_ = std::move(*CodeStore::create(options, policy_, [this](Code& code) { evicted_.push_back(code.name()); }));
    return *store_;
  }
  static uint64_t run(Code& code, uint64_t value) {
    code.entry.load()(nullptr, 0, &value);
    return value;
  }
  static Bundle numbered(uint64_t i) {
    return testing::bundle_with(fmt::format("ifunc{}", i), testing::counting_object(i).build());
  }

  Policy policy_;
  std::vector<std::string> evicted_;
  std::unique_ptr<CodeStore> store_;
};

}  // namespace tc::target
