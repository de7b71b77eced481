// SPDX-License-Identifier: Apache-2.0
//
// Runs what was built, as a node does: each test in both forms, machine code and bitcode.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "build_test_support.h"
#include "target/code_store.h"
#include "target/executor.h"

namespace tc::toolchain {

class Host final : public target::IfuncHost {
 public:
  Host() { be_node(7, 9); }
  void* data(std::string_view, size_t*) noexcept override { return nullptr; }
  tc_status_t reply(ByteView bytes) noexcept override {
    replied.assign(as_text(bytes));
    return TC_OK;
  }
  tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_OK; }
  tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  void fail(int32_t code, std::string_view message) noexcept override { failed = fmt::format("{} {}", code, message); }
  void log(int, std::string_view message) noexcept override { logged = message; }

  std::string replied, failed, logged;
};

class RunningTest : public testing::TestWithParam<SliceForm> {
 protected:
  void SetUp() override {
#ifndef TC_JIT_PLUGIN
    if (GetParam() == SliceForm::bitcode) GTEST_SKIP() << "built without the JIT";
#endif
    target::CodeStoreOptions options;
    options.use_objects = GetParam() == SliceForm::object;
    options.use_bitcode = !options.use_objects;
#ifdef TC_JIT_PLUGIN
    options.jit_plugin = TC_JIT_PLUGIN;
#endif
    store_ = std::move(*target::CodeStore::create(options, policy_, [](target::Code&) {}));
  }

  // Loads the code; each run() then calls it once with the host of this test.
  void load(const Workshop& shop) {
    auto loaded = store_->load(shop.bundle());
    ASSERT_TRUE(loaded) << loaded.error().message;
    code_ = *loaded;
  }
  void run(std::string payload, void* args) {
    ASSERT_NE(code_, nullptr);
    target::current_host = &host_;
    code_->entry.load()(payload.data(), payload.size(), args);
    target::current_host = nullptr;
  }

  Host host_;
  target::Policy policy_;
  std::unique_ptr<target::CodeStore> store_;
  target::Code* code_ = nullptr;
};

inline std::string form_name(const testing::TestParamInfo<SliceForm>& info) {
  return info.param == SliceForm::object ? "object" : "bitcode";
}

}  // namespace tc::toolchain
