// SPDX-License-Identifier: Apache-2.0
#include "target/policy.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "target/executor.h"

// In front of the C library's, which linkers then export to all libraries.
extern "C" __attribute__((visibility("default"))) char* strfry(char* text) noexcept { return text; }

namespace tc::target {
namespace {

using ::testing::HasSubstr;

int some_function() { return 1; }
int other_function() { return 2; }

TEST(Policy, nothing_is_allowed_to_begin_with) {
  Policy policy;
  const auto opened = policy.open_libraries({"libm.so.6"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, TC_ERR_DENIED);
  EXPECT_THAT(opened.error().message, HasSubstr("--allow-lib libm.so.6"));
  for (const char* symbol : {"system", "open", "dlopen", "malloc", "printf"}) {
    const auto found = policy.resolve(symbol, {});
    ASSERT_FALSE(found) << symbol;
    EXPECT_EQ(found.error().code, TC_ERR_UNRESOLVED);
    EXPECT_THAT(found.error().message, HasSubstr(symbol));
  }
}

TEST(Policy, the_ifunc_abi_is_there) {
  Policy policy;
  const auto found = policy.resolve("tc_reply", {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, abi_symbol("tc_reply"));
}

TEST(Policy, an_export_cannot_replace_the_abi) {
  Policy policy;
  policy.export_symbol("tc_reply", reinterpret_cast<void*>(&some_function));
  EXPECT_EQ(*policy.resolve("tc_reply", {}), abi_symbol("tc_reply"));
}

TEST(Policy, the_last_export_of_a_name_counts) {
  Policy policy;
  policy.export_symbol("f", reinterpret_cast<void*>(&some_function));
  EXPECT_EQ(*policy.resolve("f", {}), reinterpret_cast<void*>(&some_function));
  policy.export_symbol("f", reinterpret_cast<void*>(&other_function));
  EXPECT_EQ(*policy.resolve("f", {}), reinterpret_cast<void*>(&other_function));
}

TEST(Policy, an_allowed_library_gives_its_own_symbols) {
  Policy policy;
  policy.allow_library("libm.so.6");
  const auto libraries = policy.open_libraries({"libm.so.6"});
  ASSERT_TRUE(libraries) << libraries.error().message;
  const auto found = policy.resolve("cbrt", *libraries);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_DOUBLE_EQ(reinterpret_cast<double (*)(double)>(*found)(27.0), std::cbrt(27.0));
}

TEST(Policy, a_library_does_not_give_what_it_depends_on) {
  Policy policy;
  policy.allow_library("libm.so.6");
  const auto libraries = policy.open_libraries({"libm.so.6"});
  ASSERT_TRUE(libraries);
  ASSERT_NE(dlsym((*libraries)[0], "system"), nullptr) << "libm no longer needs libc: the test needs another library";
  EXPECT_FALSE(policy.resolve("system", *libraries));
}

// The C library finds them in the vDSO, which is no library that anybody could declare.
TEST(Policy, the_c_library_gives_functions_of_the_vdso) {
  Policy policy;
  policy.allow_library("*");
  const auto libraries = policy.open_libraries({"libc.so.6"});
  ASSERT_TRUE(libraries) << libraries.error().message;
  for (const char* symbol : {"time", "gettimeofday", "clock_gettime", "getcpu"}) {
    const auto found = policy.resolve(symbol, *libraries);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(*found, dlsym(RTLD_DEFAULT, symbol)) << "a sanitizer has its own";
  }
  const auto others = policy.open_libraries({"libm.so.6"});
  ASSERT_TRUE(others) << others.error().message;
  for (const char* symbol : {"time", "gettimeofday"}) EXPECT_FALSE(policy.resolve(symbol, *others)) << symbol;
}

TEST(Policy, a_dependency_that_was_declared_as_well_gives_its_symbols) {
  Policy policy;
  policy.allow_library("*");
  const auto libraries = policy.open_libraries({"libm.so.6", "libc.so.6"});
  ASSERT_TRUE(libraries) << libraries.error().message;
  EXPECT_TRUE(policy.resolve("getpid", *libraries));
}

TEST(Policy, a_library_that_is_not_installed_carries_the_systems_words) {
  Policy policy;
  policy.allow_library("libnowhere.so.1");
  const auto opened = policy.open_libraries({"libnowhere.so.1"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, TC_ERR_UNRESOLVED);
  EXPECT_THAT(opened.error().message, HasSubstr("cannot open shared object file"));
}

TEST(Policy, a_path_must_be_allowed_by_itself) {
  Policy policy;
  policy.allow_library("*");
  const auto denied = policy.open_libraries({"/tmp/evil.so"});
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, TC_ERR_DENIED);
  policy.allow_library("/tmp/evil.so");
  EXPECT_EQ(policy.open_libraries({"/tmp/evil.so"}).error().code, TC_ERR_UNRESOLVED);
}

TEST(Policy, a_symbol_of_the_process_counts_when_it_was_allowed_by_name) {
  Policy policy;
  policy.allow_process_symbol("getpid");
  const auto found = policy.resolve("getpid", {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, dlsym(RTLD_DEFAULT, "getpid"));
  EXPECT_EQ(policy.resolve("getppid", {}).error().code, TC_ERR_UNRESOLVED) << "that one was not";
  policy.allow_process_symbol("no_such_symbol_anywhere");
  EXPECT_EQ(policy.resolve("no_such_symbol_anywhere", {}).error().code, TC_ERR_UNRESOLVED);
}

TEST(Policy, any_symbol_of_the_process_counts_when_all_were_allowed) {
  Policy policy;
  policy.allow_process_symbol("*");
  EXPECT_TRUE(policy.resolve("getpid", {}));
  EXPECT_TRUE(policy.resolve("system", {}));
}

TEST(Policy, everything_else_comes_before_the_process) {
  Policy policy;
  policy.allow_process_symbol("*");
  policy.export_symbol("getpid", reinterpret_cast<void*>(&some_function));
  EXPECT_EQ(*policy.resolve("getpid", {}), reinterpret_cast<void*>(&some_function));
  ASSERT_TRUE(policy.replace_exports({}, {{"getppid", reinterpret_cast<void*>(&other_function)}}));
  EXPECT_EQ(*policy.resolve("getppid", {}), reinterpret_cast<void*>(&other_function));
  EXPECT_EQ(*policy.resolve("getppid", {}, Policy::LibraryExports::without), dlsym(RTLD_DEFAULT, "getppid"));
}

TEST(Policy, a_library_that_was_sent_cannot_take_what_every_ifunc_has) {
  Policy policy;
  ASSERT_TRUE(policy.allow_export("*"));
  for (const char* symbol : {"tc_reply", "memcpy"}) {
    const auto taken = policy.replace_exports({}, {{symbol, reinterpret_cast<void*>(&some_function)}});
    ASSERT_FALSE(taken) << symbol;
    EXPECT_EQ(taken.error().code, TC_ERR_DENIED);
    EXPECT_THAT(taken.error().message, HasSubstr(symbol));
  }
}

TEST(Policy, a_function_that_the_process_puts_in_front_of_a_librarys_is_taken) {
  Policy policy;
  policy.allow_library("libc.so.6");
  const auto libraries = policy.open_libraries({"libc.so.6"});
  ASSERT_TRUE(libraries);
  ASSERT_NE(dlsym((*libraries)[0], "strfry"), reinterpret_cast<void*>(&strfry));
  EXPECT_EQ(*policy.resolve("strfry", *libraries), reinterpret_cast<void*>(&strfry));
  EXPECT_FALSE(policy.resolve("strfry", {})) << "that the process has it allows nobody to use it";
}

TEST(Policy, what_compilers_call_unasked_is_there) {
  Policy policy;
  for (const char* symbol : {"memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen", "__udivti3", "__divti3"})
    EXPECT_TRUE(policy.resolve(symbol, {})) << symbol;
  using Udiv = unsigned __int128 (*)(unsigned __int128, unsigned __int128);
  const auto divide = reinterpret_cast<Udiv>(*policy.resolve("__udivti3", {}));
  EXPECT_EQ(static_cast<uint64_t>(divide(static_cast<unsigned __int128>(1) << 80, 1 << 20)), uint64_t{1} << 60);
}

// ---- For code that another process runs. Its functions are numbers here.

class ForeignPolicy : public ::testing::Test {
 protected:
  static void* number(uintptr_t n) { return reinterpret_cast<void*>(n); }
  std::map<std::string, void*> known_;  // "library symbol"
  std::vector<std::string> asked_;
  Policy policy_{[this](const std::string& library, const std::string& symbol) -> Result<void*> {
    asked_.push_back(library + " " + symbol);
    if (const auto found = known_.find(asked_.back()); found != known_.end()) return found->second;
    return fail(TC_ERR_UNRESOLVED, "there is no {} there", asked_.back());
  }};
};

TEST_F(ForeignPolicy, what_every_ifunc_has_lies_in_the_other_process) {
  known_ = {{" tc_reply", number(1)}, {" memcpy", number(2)}};
  EXPECT_EQ(*policy_.resolve("tc_reply", {}), number(1));
  EXPECT_EQ(*policy_.resolve("memcpy", {}), number(2));
  const auto lacking = policy_.resolve("tc_id", {});
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().message, "there is no  tc_id there");
}

TEST_F(ForeignPolicy, a_name_that_no_ifunc_may_use_is_not_even_asked_for) {
  known_ = {{" system", number(1)}};
  policy_.allow_process_symbol("*");
  const auto found = policy_.resolve("system", {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, TC_ERR_UNRESOLVED);
  EXPECT_THAT(found.error().message, HasSubstr("'system'"));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(ForeignPolicy, a_library_is_opened_there_once_and_asked_for_its_symbols) {
  known_ = {{"libm.so.6 ", nullptr}, {"libz.so.1 ", nullptr}, {"libz.so.1 crc32", number(3)}};
  policy_.allow_library("*");
  const auto libraries = policy_.open_libraries({"libm.so.6", "libz.so.1"});
  ASSERT_TRUE(libraries) << libraries.error().message;
  EXPECT_EQ(*policy_.open_libraries({"libm.so.6", "libz.so.1"}), *libraries);
  EXPECT_THAT(asked_, ::testing::ElementsAre("libm.so.6 ", "libz.so.1 "));
  EXPECT_EQ(*policy_.resolve("crc32", *libraries), number(3));
  EXPECT_EQ(policy_.resolve("deflate", *libraries).error().code, TC_ERR_UNRESOLVED);
}

TEST_F(ForeignPolicy, a_library_that_is_not_allowed_is_not_opened_there) {
  EXPECT_EQ(policy_.open_libraries({"libm.so.6"}).error().code, TC_ERR_DENIED);
  EXPECT_TRUE(asked_.empty());
  policy_.allow_library("libm.so.6");
  EXPECT_EQ(policy_.open_libraries({"libm.so.6"}).error().message, "there is no libm.so.6  there");
}

TEST_F(ForeignPolicy, an_error_other_than_a_missing_symbol_ends_the_search) {
  Policy broken([](const std::string&, const std::string& symbol) -> Result<void*> {
    if (symbol.empty()) return nullptr;
    return fail(TC_ERR_DISCONNECTED, "the other process ended");
  });
  broken.allow_library("*");
  const auto found = broken.resolve("cos", *broken.open_libraries({"libm.so.6"}));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, TC_ERR_DISCONNECTED);
}

}  // namespace
}  // namespace tc::target
