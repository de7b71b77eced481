// SPDX-License-Identifier: Apache-2.0
#include <llvm/Object/ObjectFile.h>

#include <cstring>

#include "target/testing/jit_test_base.h"

namespace tc::target::jit {
namespace {

using testing::HasSubstr;

int host_add(int a, int b) { return a + b; }
int host_value = 7;
int perhaps() { return 5; }

class Link : public EitherEffort {};
INSTANTIATE_TEST_SUITE_P(, Link, testing::Values(Effort::baseline, Effort::tuned), effort_name);

TEST_P(Link, every_kind_of_data_works) {
  const auto code = load("data");
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(function<int(int)>(*code, "data_count")(1), 41);
  EXPECT_EQ(function<int(int)>(*code, "data_count")(1), 42);
  EXPECT_STREQ(function<const char*()>(*code, "data_greeting")(), "hello");
  EXPECT_EQ((function<int(size_t, int)>(*code, "data_apply")(0, 21)), 42);
  EXPECT_EQ((function<int(size_t, int)>(*code, "data_apply")(1, 14)), 42);
  EXPECT_EQ(function<size_t()>(*code, "data_nonzero")(), 0u);
  EXPECT_GT(code->bytes(), 100'000u);
}

TEST_P(Link, memory_that_was_used_before_is_zeroed) {
  const auto object = compiled("data", GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto code = linked(object);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(function<size_t()>(*code, "data_nonzero")(), 0u);
    function<void()>(*code, "data_fill")();
  }
}

TEST_P(Link, functions_and_variables_of_the_host_are_reached) {
  const auto code =
      load("calls", resolver({{"host_add", reinterpret_cast<void*>(&host_add)}, {"host_value", &host_value}}));
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(function<int(int)>(*code, "calls_main")(35), 42);
}

TEST_P(Link, the_error_of_the_resolver_comes_back_unchanged_and_is_the_same_each_time) {
  const auto object = compiled("missing", GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto code = jit_->link(object, "missing", resolver(), {}, nullptr);
    ASSERT_FALSE(code);
    EXPECT_EQ(code.error().code, TC_ERR_UNRESOLVED);
    EXPECT_EQ(code.error().message, "symbol missing_a is not exported here");
  }
}

TEST_P(Link, other_errors_of_the_resolver_keep_their_code) {
  const auto denied = [](const std::string& name) -> Result<void*> { return fail(TC_ERR_DENIED, "{}: not you", name); };
  for (const auto* name : {"calls", "weak"}) {
    const auto code = jit_->link(compiled(name, GetParam()), name, denied, {}, nullptr);
    ASSERT_FALSE(code) << name;
    EXPECT_EQ(code.error().code, TC_ERR_DENIED);
    EXPECT_THAT(code.error().message, HasSubstr("not you"));
  }
}

TEST_P(Link, a_weak_symbol_may_be_missing) {
  const auto without = load("weak");
  ASSERT_NE(without, nullptr);
  EXPECT_EQ(function<int()>(*without, "weak_main")(), -1);
  const auto with = load("weak", resolver({{"perhaps", reinterpret_cast<void*>(&perhaps)}}));
  ASSERT_NE(with, nullptr);
  EXPECT_EQ(function<int()>(*with, "weak_main")(), 5);
}

TEST_P(Link, two_ifuncs_may_use_the_same_names) {
  const auto one = load("helper_one"), two = load("helper_two"), again = load("helper_one");
  ASSERT_TRUE(one && two && again);
  EXPECT_EQ(function<int(int)>(*one, "one_main")(0), 11);
  EXPECT_EQ(function<int(int)>(*two, "two_main")(0), 22);
  EXPECT_EQ(function<int(int)>(*one, "one_main")(0), 12);
  EXPECT_EQ(function<int(int)>(*again, "one_main")(0), 11);
}

TEST_P(Link, a_symbol_that_is_not_there_is_null) {
  const auto code = load("helper_one");
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->symbol("two_main"), nullptr);
  EXPECT_EQ(code->symbol(""), nullptr);
}

TEST_P(Link, exceptions_are_thrown_and_caught_inside) {
  const auto from_process = [](const std::string& name) -> Result<void*> {
    if (void* const address = ::dlsym(RTLD_DEFAULT, name.c_str())) return address;
    return fail(TC_ERR_UNRESOLVED, "{} is not in this process", name);
  };
  // Many times over: frame tables are registered and withdrawn again.
  for (int i = 0; i < 100; ++i) {
    auto code = load("exception", from_process);
    ASSERT_NE(code, nullptr);
    int cleaned = 0;
    const auto entry = function<int(int, int*)>(*code, "exception_main");
    EXPECT_EQ(entry(3, &cleaned), 6);
    EXPECT_EQ(cleaned, 2);
    EXPECT_EQ(entry(42, &cleaned), -42);
    EXPECT_EQ(cleaned, 3);
    if (GetParam() == Effort::tuned && i == 5) break;  // slow to compile
  }
}

TEST_P(Link, linked_code_may_outlive_the_jit) {
  const auto code = load("data");
  ASSERT_NE(code, nullptr);
  jit_.reset();
  EXPECT_EQ(function<int(int)>(*code, "data_count")(2), 42);
}

class BadObject : public JitTest {
 protected:
  void expect_refused(const Bytes& object, const std::string& reason, tc_status_t why = TC_ERR_COMPILE) {
    const auto code =
        jit_->link(object, "bad", [&](const std::string&) -> Result<void*> { return far_away; }, {}, nullptr);
    ASSERT_FALSE(code);
    EXPECT_EQ(code.error().code, why);
    EXPECT_THAT(code.error().message, HasSubstr(reason));
  }
  // From all code.
  void* const far_away = reinterpret_cast<void*>(uintptr_t{4096});
};

TEST_F(BadObject, what_is_no_object_is_refused) {
  expect_refused({}, "cannot read the object");
  const auto text = as_bytes("this is not an object file, and it is longer than the 64 bytes of an ELF header");
  expect_refused(Bytes(text.begin(), text.end()), "cannot read the object");
  expect_refused(test_file("data.bc"), "cannot read the object");
}

TEST_F(BadObject, an_object_cut_short_is_refused) {
  const auto whole = compiled("data", Effort::baseline);
  for (const size_t size : {size_t{4}, size_t{63}, size_t{64}, whole.size() / 2, whole.size() - 1})
    expect_refused(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), "");
}

TEST_F(BadObject, an_object_for_another_architecture_is_refused) {
  expect_refused(test_file("other_arch.o"), "the object is for powerpc64le when this node is");
}

TEST_F(BadObject, an_object_with_thread_locals_is_refused) {
  expect_refused(test_file("thread_local.o"), "thread-local variable mine");
  expect_refused(test_file("thread_local_extern.o"), "thread-local variable theirs");
}

TEST_F(BadObject, an_object_with_static_constructors_is_refused) {
  expect_refused(test_file("constructor.o"), "(.init_array");
}

TEST_F(BadObject, an_object_for_which_there_is_no_memory_is_refused_with_the_reason_of_the_memory) {
  expect_refused(test_file("over_aligned.o"), "wants data aligned to 8192 bytes when 4096 is the most",
                 TC_ERR_TOO_LARGE);
}

TEST_F(BadObject, an_object_that_reaches_only_near_variables_is_refused_in_the_words_of_the_linker) {
#if defined(__riscv)
  GTEST_SKIP() << "on riscv64 such code reaches the first addresses, too";
#endif
  expect_refused(test_file("near_variable.o"), "cannot link: ");
  expect_refused(test_file("near_variable.o"), "host_value");
}

TEST_F(BadObject, an_object_that_claims_code_of_others_in_its_frame_table_is_refused) {
  expect_refused(test_file("frame_table.o"), "");
}

TEST_F(BadObject, an_object_whose_frame_table_can_be_written_is_refused) {
  expect_refused(test_file("writable_frame_table.o"), "");
}

// Each entry, made longer than its function.
TEST_F(BadObject, an_object_whose_frame_table_speaks_of_more_than_its_code_is_refused) {
  auto object = compiled("exception", Effort::baseline);
  auto file =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(llvm::StringRef(as_text(object)), "object"));
  ASSERT_TRUE(bool(file));
  size_t entries = 0;
  for (const auto& section : (*file)->sections()) {
    if (llvm::cantFail(section.getName()) != ".eh_frame") continue;
    const auto content = llvm::cantFail(section.getContents());
    const auto begin = static_cast<size_t>(content.data() - reinterpret_cast<const char*>(object.data()));
    for (size_t at = 0; at + 16 <= content.size();) {
      uint32_t words[2];
      std::memcpy(words, content.data() + at, sizeof words);
      if (words[1] != 0) {
        ++entries;
        auto changed = object;
        changed[begin + at + 14] = std::byte{1};  // 64 KiB more
        expect_refused(changed, "frame table speaks of ");
      }
      at += 4 + words[0];
    }
  }
  EXPECT_GE(entries, 1u);
}

TEST_F(BadObject, an_object_of_another_compiler_is_taken) {
  const auto code = linked(test_file("data.o"));
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(function<int(int)>(*code, "data_count")(2), 42);
}

}  // namespace
}  // namespace tc::target::jit
