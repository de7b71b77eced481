// SPDX-License-Identifier: Apache-2.0
//
// For tests of the plug-in: they go through the library that nodes open, and through nothing else.
//
// Thread: any.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "target/jit_plugin.h"

#if defined(__SANITIZE_ADDRESS__)
#define TC_LEAK_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TC_LEAK_SANITIZER 1
#endif
#endif
#ifdef TC_LEAK_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace tc::target::jit {

// Around code in which LLVM gives up: what it held then is abandoned on purpose (target/jit/llvm_errors.h).
struct AllowLeaks {
#ifdef TC_LEAK_SANITIZER
  __lsan::ScopedDisabler disabler;
#endif
  AllowLeaks() {}  // not trivial: an unused variable otherwise
};

// One library for all tests: it must not be closed again.
inline JitFactory plugin_factory() {
  void* library = ::dlopen(TC_JIT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!library) ADD_FAILURE() << ::dlerror();
  return library ? reinterpret_cast<JitFactory>(::dlsym(library, jit_factory_name)) : nullptr;
}

inline Bytes test_file(const std::string& name) {
  auto bytes = read_file(std::string(TC_JIT_TESTDATA) + "/" + name, 16u << 20);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? std::move(*bytes) : Bytes();
}

// What a node would: what compilers take for granted, a few names, and an error of its own for all others.
inline SymbolResolver resolver(std::map<std::string, void*> known = {}) {
  known["memset"] = reinterpret_cast<void*>(&std::memset);
  known["memcpy"] = reinterpret_cast<void*>(&std::memcpy);
  return [known = std::move(known)](const std::string& name) -> Result<void*> {
    if (const auto found = known.find(name); found != known.end()) return found->second;
    return fail(TC_ERR_UNRESOLVED, "symbol {} is not exported here", name);
  };
}

class JitTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto factory = plugin_factory();
    ASSERT_NE(factory, nullptr);
    jit_.reset(factory(jit_plugin_version));
    ASSERT_NE(jit_, nullptr);
  }

  Bytes compiled(const std::string& name, Effort effort) {
    auto object = jit_->compile(test_file(name + ".bc"), effort, Assembly::refused, name);
    EXPECT_TRUE(object) << object.error().message;
    return object ? std::move(*object) : Bytes();
  }
  std::unique_ptr<LinkedCode> linked(const Bytes& object, const SymbolResolver& resolve = resolver()) {
    auto code = jit_->link(object, "test", resolve, {}, nullptr);
    EXPECT_TRUE(code) << code.error().message;
    return code ? std::move(*code) : nullptr;
  }

  std::unique_ptr<Jit> jit_;
};

template <class F>
F* function(const LinkedCode& code, const std::string& name) {
  void* const address = code.symbol(name);
  EXPECT_NE(address, nullptr) << name;
  return reinterpret_cast<F*>(address);
}

// Tests of what must hold for either kind of code.
class EitherEffort : public JitTest, public testing::WithParamInterface<Effort> {
 protected:
  std::unique_ptr<LinkedCode> load(const std::string& name, const SymbolResolver& resolve = resolver()) {
    const auto object = compiled(name, GetParam());
    return object.empty() ? nullptr : linked(object, resolve);
  }
};

inline std::string effort_name(const testing::TestParamInfo<Effort>& info) {
  return info.param == Effort::baseline ? "baseline" : "tuned";
}

}  // namespace tc::target::jit
