// SPDX-License-Identifier: Apache-2.0
//
// What would end a process ends the call alone, wherever in the code it stands: the entry is left, nothing after it
// runs, and the next call is as good as new.
#include <stdexcept>

#include "base/file.h"
#include "running_support.h"

namespace tc::toolchain {
namespace {

using testing::HasSubstr;

// A sanitizer's allocator ends the process where others refuse, and checks that new[] of one library meets its delete[].
#if defined(__has_feature)
constexpr bool memory_is_refused = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool memory_is_refused = true;
#endif

class ToolchainFailures : public RunningTest {};
INSTANTIATE_TEST_SUITE_P(Forms, ToolchainFailures, testing::Values(SliceForm::object, SliceForm::bitcode), form_name);

TEST_P(ToolchainFailures, an_abort_in_the_entry_leaves_it_with_a_code_and_the_line) {
  load(c_file("foo",
              "void abort(void) __attribute__((noreturn));\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p; if (n > 3)\n abort();\n *(int *)t = 1; }\n"));
  int value = 0;
  run("long", &value);
  EXPECT_EQ(host_.failed, "-2 abort() at foo.c:4");
  EXPECT_EQ(value, 0);
  host_.failed.clear();
  run("ok", &value);
  EXPECT_EQ(host_.failed, "");
  EXPECT_EQ(value, 1);
}

TEST_P(ToolchainFailures, whatever_ends_a_process_ends_the_call) {
  load(c_file("foo",
              "#include <stdlib.h>\n#include <unistd.h>\nvoid __chk_fail(void) __attribute__((noreturn));\n"
              "void foo_main(void *p, size_t n, void *t) {\n  (void)p;\n  switch (n) {\n"
              "    case 1: exit(3);\n    case 2: _exit(3);\n    case 3: _Exit(3);\n    case 4: quick_exit(3);\n"
              "    case 5: __chk_fail();\n  }\n  *(int *)t = 1;\n}\n"));
  const char* const told[] = {"",
                              "-2 exit() at foo.c:8",
                              "-2 _exit() at foo.c:9",
                              "-2 _Exit() at foo.c:10",
                              "-2 quick_exit() at foo.c:11",
                              "-3 buffer overrun at foo.c:12"};
  for (size_t n = 0; n < std::size(told); ++n) {
    int value = 0;
    host_.failed.clear();
    run(std::string(n, 'x'), &value);
    EXPECT_EQ(host_.failed, told[n]);
    EXPECT_EQ(value, n == 0 ? 1 : 0);
  }
}

TEST_P(ToolchainFailures, a_trap_and_a_failed_assertion_are_told_with_their_words) {
  load(c_file("foo",
              "#include <assert.h>\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p, (void)t; assert(n < 3); __builtin_trap(); }\n"));
  run("long", nullptr);
  EXPECT_THAT(host_.failed, HasSubstr("-2 assertion 'n < 3' failed at foo.c:3"));
  run("", nullptr);
  EXPECT_THAT(host_.failed, HasSubstr("-1 trap"));
}

TEST_P(ToolchainFailures, all_functions_on_the_way_out_return_at_once) {
  load(c_file(
      "foo",
      "void abort(void) __attribute__((noreturn));\n"
      "__attribute__((noinline)) static int deep(size_t n, int *trace) {\n"
      "  if (n == 0) abort();\n  int below = deep(n - 1, trace); ++*trace; return below + 1; }\n"
      "__attribute__((noinline)) static int check(size_t n, int *trace) {\n"
      "  int found = n > 2 ? deep(n, trace) : 7; *trace += 100; return found; }\n"
      "void foo_main(void *p, size_t n, void *t) { int v = check(n, t); tc_reply(p, n); ((int *)t)[1] = v; }\n"));
  int values[2] = {0, 0};
  run("four", values);
  EXPECT_THAT(host_.failed, HasSubstr("-2 abort()"));
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(host_.replied, "");
  run("ab", values);
  EXPECT_EQ(values[0], 100);
  EXPECT_EQ(values[1], 7);
  EXPECT_EQ(host_.replied, "ab");
}

TEST_P(ToolchainFailures, an_entry_that_calls_itself_is_left_all_the_way_up) {
  load(c_file("foo",
              "void abort(void) __attribute__((noreturn));\n"
              "void foo_main(void *p, size_t n, void *t) {\n"
              "  if (n == 0) abort();\n  if (n < 10) foo_main(p, n - 1, t);\n  ++*(volatile int *)t; }\n"));
  int value = 0;
  run("four", &value);
  EXPECT_THAT(host_.failed, HasSubstr("-2 abort()"));
  EXPECT_EQ(value, 0);
  host_.failed.clear();
  run("longer than that", &value);
  EXPECT_EQ(host_.failed, "");
  EXPECT_EQ(value, 1);
}

TEST_P(ToolchainFailures, a_failure_behind_a_function_pointer_leaves_the_entry_too) {
  load(c_file("foo",
              "void abort(void) __attribute__((noreturn));\n"
              "static int bad(int x) { if (x > 3) abort(); return x; }\nstatic int good(int x) { return 2 * x; }\n"
              "static int (*volatile choice[2])(int) = {good, bad};\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p; *(int *)t = choice[n & 1]((int)n) + 1; }\n"));
  int value = 0;
  run("12345", &value);
  EXPECT_THAT(host_.failed, HasSubstr("-2 abort()"));
  EXPECT_EQ(value, 0);
  run("1234", &value);
  EXPECT_EQ(value, 9);
}

TEST_P(ToolchainFailures, a_function_that_always_fails_ends_its_callers) {
  load(c_file(
      "foo",
      "void abort(void) __attribute__((noreturn));\n"
      "__attribute__((noinline, noreturn)) static void give_up(int why) { tc_log(why, \"giving up\"); abort(); }\n"
      "void foo_main(void *p, size_t n, void *t) { (void)p; if (n) give_up((int)n); *(int *)t = 1; }\n"));
  int value = 0;
  run("x", &value);
  EXPECT_THAT(host_.failed, HasSubstr("-2 abort()"));
  EXPECT_EQ(host_.logged, "giving up");
  EXPECT_EQ(value, 0);
}

TEST_P(ToolchainFailures, a_bounds_check_of_the_cxx_library_fails_the_call) {
  Workshop shop;
  shop.file("foo.cc",
            "#include <array>\n#include <string_view>\n"
            "extern \"C\" void foo_main(void* p, unsigned long n, void* t) {\n"
            "  std::string_view text(static_cast<char*>(p), n);\n  *static_cast<char*>(t) = text.at(3); }\n");
  load(shop);
  char letter = 0;
  run("abcd", &letter);
  EXPECT_EQ(letter, 'd');
  run("abc", &letter);
  EXPECT_THAT(host_.failed, HasSubstr("-3 std::out_of_range at foo.cc:5"));
}

TEST_P(ToolchainFailures, an_exception_that_nobody_catches_fails_the_call) {
  if (GetParam() == SliceForm::object) GTEST_SKIP() << "code with exceptions travels as bitcode alone";
  policy_.allow_library("*");
  Workshop shop;
  shop.file("foo.cc",
            "__attribute__((noinline)) static int check(unsigned long n) { if (n > 3) throw 41; return 0; }\n"
            "extern \"C\" void foo_main(void*, unsigned long n, void* t) { check(n); *static_cast<int*>(t) = 1; }\n");
  shop.file("foo.deps", "stdc++\ngcc_s\n");
  shop.request.clang_flags = {"-fexceptions"};
  load(shop);
  int value = 0;
  run("abcdef", &value);
  EXPECT_EQ(host_.failed, "-6 an exception was thrown and not caught");
  EXPECT_EQ(value, 0);
  run("", &value);
  EXPECT_EQ(value, 1);
}

// The next call waited for the end of the initialiser for ever.
TEST_P(ToolchainFailures, a_failure_in_the_initialiser_of_a_static_lets_the_next_call_try_again) {
  policy_.allow_library("*");
  for (const auto* const initialiser :
       {"start(n)", "start(n) + start(n / 2)", "[&] { if (n > 3) abort(); return 7L; }()", "deep(n)"}) {
    SCOPED_TRACE(initialiser);
    Workshop shop;
    shop.file("foo.cc", std::string("extern \"C\" void abort() __attribute__((noreturn));\n"
                                    "__attribute__((noinline)) static long start(unsigned long n) {\n"
                                    "  if (n > 3) abort();\n  return 7; }\n"
                                    "__attribute__((noinline)) static long deep(unsigned long n) {\n"
                                    "  static const long below = start(n);\n  return below; }\n"
                                    "extern \"C\" void foo_main(void*, unsigned long n, void* t) {\n"
                                    "  static const long x = ") +
                            initialiser + ";\n  *static_cast<long*>(t) = x; }\n");
    shop.file("foo.deps", "stdc++\n");
    load(shop);
    long value = 0;
    for (int i = 0; i < 2; ++i) {
      run("four", &value);
      EXPECT_THAT(host_.failed, HasSubstr("-2 abort()"));
      EXPECT_EQ(value, 0);
    }
    host_.failed.clear();
    for (const auto* const payload : {"", "four"}) {
      run(payload, &value);
      EXPECT_EQ(host_.failed, "");
      EXPECT_EQ(value, std::string_view(initialiser).contains('+') ? 14 : 7);
    }
  }
}

// Its size comes from the payload.
TEST_P(ToolchainFailures, memory_that_cannot_be_had_fails_the_call) {
  if (!memory_is_refused) GTEST_SKIP() << "a sanitizer's allocator";
  policy_.allow_library("*");
  Workshop shop;
  shop.file("foo.cc",
            "#include <threechains/ifunc.h>\n"
            "extern \"C\" void foo_main(void* p, size_t, void* t) {\n"
            "  char* text =\n    new char[*static_cast<size_t*>(p)];\n"
            "  text[0] = 'x';\n  tc_reply(text, 1);\n  delete[] text;\n  *static_cast<int*>(t) = 1; }\n");
  shop.file("foo.deps", "stdc++\n");
  load(shop);
  int value = 0;
  const auto run_with = [&](uint64_t size) { run(std::string(reinterpret_cast<const char*>(&size), 8), &value); };
  run_with(uint64_t{1} << 60);
  EXPECT_EQ(host_.failed, "-6 std::bad_alloc at foo.cc:4");
  EXPECT_EQ(value, 0);
  host_.failed.clear();
  run_with(10);
  EXPECT_EQ(host_.failed, "");
  EXPECT_EQ(host_.replied, "x");
  EXPECT_EQ(value, 1);
}

// Nothing in it throws or catches, but what it calls may throw.
TEST_P(ToolchainFailures, an_exception_of_something_that_is_called_fails_the_call) {
  if (GetParam() == SliceForm::object) GTEST_SKIP() << "code with exceptions travels as bitcode alone";
  policy_.allow_library("*");
  policy_.export_symbol("application_check", reinterpret_cast<void*>(+[](size_t size) {
                          if (size > 8) throw std::runtime_error("too long");
                        }));
  Workshop shop;
  shop.file("foo.cc",
            "#include <threechains/ifunc.h>\n"
            "extern \"C\" void application_check(size_t);\n"
            "extern \"C\" void foo_main(void* p, size_t n, void* t) {\n"
            "  application_check(n);\n  char* text = new char[*static_cast<size_t*>(p)];\n"
            "  text[0] = 'x';\n  tc_reply(text, 1);\n  delete[] text;\n  *static_cast<int*>(t) = 1; }\n");
  shop.file("foo.deps", "stdc++\ngcc_s\n");
  shop.request.externs = {"application_check"};
  shop.request.clang_flags = {"-fexceptions"};
  load(shop);
  int value = 0;
  run("nine bytes or more", &value);
  EXPECT_EQ(host_.failed, "-6 an exception was thrown and not caught");
  host_.failed.clear();
  run(memory_is_refused ? std::string(8, '\x10') : "nine bytes or more", &value);
  EXPECT_EQ(host_.failed, "-6 an exception was thrown and not caught");
  EXPECT_EQ(value, 0);
}

// The library itself throws by a function of the C++ library, and has no handler.
TEST_P(ToolchainFailures, an_exception_passes_through_a_library_that_was_sent_to_who_catches_it) {
  if (GetParam() == SliceForm::object) GTEST_SKIP() << "code with exceptions travels as bitcode alone";
  policy_.allow_library("*");
  Workshop library;
  library.file("checks.cc", "extern \"C\" int check(unsigned long n) { if (n > 3) throw 41; return 0; }\n");
  library.file("checks.deps", "stdc++\ngcc_s\n");
  library.request.clang_flags = {"-fexceptions"};
  library.request.library = true;
  ASSERT_TRUE(policy_.allow_export("check"));
  load(library);
  const auto sent = library.path() / "checks.ifunc";
  ASSERT_TRUE(write_file_atomically(sent, library.bundle().bytes()));
  Workshop shop;
  shop.file("foo.cc",
            "extern \"C\" int check(unsigned long n);\n"
            "extern \"C\" void foo_main(void*, unsigned long n, void* t) {\n"
            "  try { check(n); } catch (int e) { *static_cast<int*>(t) = e + 1; } }\n");
  shop.file("foo.deps", "stdc++\ngcc_s\n");
  shop.request.clang_flags = {"-fexceptions"};
  shop.request.against = {sent};
  load(shop);
  int value = 0;
  run("abcdef", &value);
  EXPECT_EQ(value, 42);
  EXPECT_EQ(host_.failed, "");
}

TEST_P(ToolchainFailures, a_cast_to_the_wrong_class_fails_the_call) {
  policy_.allow_library("*");
  Workshop shop;
  shop.file("foo.cc",
            "struct Base { virtual ~Base() {} };\nstruct Other : Base { int number = 7; };\n"
            "__attribute__((noinline)) static int number_of(Base& base) {\n"
            "  return dynamic_cast<Other&>(base).number; }\n"
            "extern \"C\" void foo_main(void*, unsigned long n, void* t) {\n"
            "  Base base;\n  Other other;\n  *static_cast<int*>(t) = number_of(n > 3 ? base : other); }\n");
  shop.file("foo.deps", "stdc++\n");
  load(shop);
  int value = 0;
  run("four", &value);
  EXPECT_EQ(host_.failed, "-6 std::bad_cast at foo.cc:4");
  EXPECT_EQ(value, 0);
  run("", &value);
  EXPECT_EQ(value, 7);
}

// LLVM's own functions (umin, memcpy) stay plain calls when they come into the reach of a handler.
TEST_P(ToolchainFailures, some_exceptions_are_caught_and_others_are_not) {
  if (GetParam() == SliceForm::object) GTEST_SKIP() << "code with exceptions travels as bitcode alone";
  policy_.allow_library("*");
  Workshop shop;
  shop.request.inputs = {TC_EXAMPLES_DIR "/09-cplusplus/parse.cc"};
  shop.request.clang_flags = {"-fexceptions"};
  load(shop);
  run("12+30", nullptr);
  EXPECT_EQ(host_.replied, "42");
  run("12+x", nullptr);
  EXPECT_EQ(host_.failed, "1 'x' is no digit");
  run("12+", nullptr);
  EXPECT_EQ(host_.failed, "-6 an exception was thrown and not caught");
}

TEST_P(ToolchainFailures, a_throw_of_julia_needs_no_runtime_and_no_address) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll",
            "target triple = \"x86_64-unknown-linux-gnu\"\ndeclare void @jl_throw(ptr) noreturn\n"
            "declare void @ijl_bounds_error_int(ptr, i64) noreturn\n"
            "define void @foo_main(ptr %p, i64 %n, ptr %t) {\n  %c = icmp ugt i64 %n, 3\n"
            "  br i1 %c, label %bad, label %good\ngood:\n  store i32 1, ptr %t\n"
            "  %d = icmp eq i64 %n, 2\n  br i1 %d, label %bounds, label %done\n"
            "bad:\n  call void @jl_throw(ptr inttoptr (i64 140737000000000 to ptr))\n  unreachable\n"
            "bounds:\n  call void @ijl_bounds_error_int(ptr %p, i64 2)\n  unreachable\ndone:\n  ret void\n}\n");
  load(shop);
  int value = 0;
  run("four", &value);
  EXPECT_EQ(host_.failed, "-6 exception thrown");
  EXPECT_EQ(value, 0);
  run("ab", &value);
  EXPECT_EQ(host_.failed, "-3 index out of bounds");
}

TEST(ToolchainFailuresAtTheSource, what_ends_a_program_there_is_left_as_it_is) {
  auto shop =
      c_file("foo",
             "void abort(void) __attribute__((noreturn));\n"
             "size_t foo_payload_bound(void *a, size_t n) { if (!a) abort(); return n; }\n"
             "int foo_payload_init(void *a, size_t n, void *p, size_t *m) { (void)a, (void)n, (void)p, (void)m; "
             "return 0; }\nvoid foo_main(void *p, size_t n, void *t) { (void)p, (void)n, (void)t; }\n");
  EXPECT_THAT(read_module(shop.bundle(), SliceRole::source).text(),
              testing::AllOf(HasSubstr("@abort"), testing::Not(HasSubstr("@tc_fail"))));
}

}  // namespace
}  // namespace tc::toolchain
