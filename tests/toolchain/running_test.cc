// SPDX-License-Identifier: Apache-2.0
//
// What was built runs, in both forms: each case loads the bundle as a node does and calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "running_support.h"
#include "target/payload_code.h"

namespace tc::toolchain {
namespace {

class ToolchainRunning : public RunningTest {};

INSTANTIATE_TEST_SUITE_P(Forms, ToolchainRunning, testing::Values(SliceForm::object, SliceForm::bitcode), form_name);

TEST_P(ToolchainRunning, tsi_increments) {
  Workshop shop;
  shop.request.inputs = {TC_EXAMPLES_DIR "/01-increment/tsi.c"};
  load(shop);
  uint64_t counter = 41;
  run("", &counter);
  EXPECT_EQ(counter, 42u);
}

TEST_P(ToolchainRunning, hello_answers_with_the_nodes_number) {
  Workshop shop;
  shop.request.inputs = {TC_EXAMPLES_DIR "/02-hello/hello.c"};
  load(shop);
  run("world", nullptr);
  EXPECT_EQ(host_.replied, "Hello, world, from node 7");
}

TEST_P(ToolchainRunning, increment_says_that_it_finds_no_counter_and_uses_the_one_it_gets) {
  Workshop shop;
  shop.request.inputs = {TC_EXAMPLES_DIR "/01-increment/increment.c"};
  load(shop);
  run("", nullptr);
  EXPECT_THAT(host_.failed, testing::HasSubstr("no counter"));
  uint64_t counter = 5;
  run(std::string("\x03\0\0\0\0\0\0\0", 8), &counter);
  EXPECT_EQ(counter, 8u);
  EXPECT_EQ(host_.replied, std::string("\x08\0\0\0\0\0\0\0", 8));
}

TEST_P(ToolchainRunning, counters_tables_of_strings_and_function_pointers_are_relocated) {
  load(c_file("foo",
              "static int calls; static int big[1000];\n"
              "static const char *const words[] = {\"none\", \"one\", \"many\"};\n"
              "static int twice(int x) { return 2 * x; }\nstatic int square(int x) { return x * x; }\n"
              "static int (*volatile operations[2])(int) = {twice, square};\n"
              "__attribute__((noinline)) static const char *word(size_t n) { return words[n > 2 ? 2 : n]; }\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p; ++calls; big[999] += calls;\n"
              "  *(int *)t = operations[n & 1](5) * 100 + big[999]; tc_log(1, word(n)); }\n"));
  int value = 0;
  run("xx", &value);
  EXPECT_EQ(value, 1001);
  EXPECT_EQ(host_.logged, "many");
  run("x", &value);
  EXPECT_EQ(value, 2503);  // the counter kept its value between calls
  EXPECT_EQ(host_.logged, "one");
}

// What the sentence that refuses it without --extern says.
TEST_P(ToolchainRunning, a_weak_symbol_is_what_the_application_exports_or_null) {
  auto shop =
      c_file("foo",
             "extern __attribute__((weak)) int perhaps(void);\n"
             "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(int *)t = perhaps ? perhaps() : -1; }\n");
  shop.request.externs = {"perhaps"};
  int value = 0;
  load(shop);
  run("", &value);
  EXPECT_EQ(value, -1);

  int (*const perhaps)() = [] { return 5; };
  policy_.export_symbol("perhaps", reinterpret_cast<void*>(perhaps));
  SetUp();
  load(shop);
  run("", &value);
  EXPECT_EQ(value, 5);
}

TEST_P(ToolchainRunning, sections_of_the_authors_own_are_code_and_data_like_any_other) {
  load(c_file("foo",
              "__attribute__((section(\"my_data\"))) static volatile int number = 5;\n"
              "__attribute__((section(\"my_const\"))) static const volatile int constant = 37;\n"
              "__attribute__((section(\"my_code\"), noinline)) static int sum(void) { return number++ + constant; }\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(int *)t = sum(); }\n"));
  int value = 0;
  run("", &value);
  EXPECT_EQ(value, 42);
  run("", &value);
  EXPECT_EQ(value, 43);
}

TEST_P(ToolchainRunning, declared_libraries_are_called) {
  policy_.allow_library("libm.so.6");
  load(c_file("foo",
              "#pragma comment(lib, \"m\")\ndouble cbrt(double);\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(double *)t = cbrt(*(double *)t); }\n"));
  double value = 27;
  run("", &value);
  EXPECT_DOUBLE_EQ(value, 3);
}

int exported(int x) { return x + 1000; }

TEST_P(ToolchainRunning, numbers_of_16_80_and_128_bits_are_computed_with) {
  auto shop =
      c_file("foo",
             "void foo_main(void *p, size_t n, void *t) { (void)p; volatile long *to = t;\n"
             "  volatile long double l = n; l = l * 1.5L + 1; to[0] = (long)l;\n"
             "  volatile __int128 wide = (__int128)n << 70; l = wide; to[1] = (long)(l / (1LL << 60)); wide = l;\n"
             "  volatile _Float16 h = (_Float16)n; h = h + h; to[2] = (long)h; float f = h; to[3] = (long)f;\n"
             "  double d = h; h = d / 4; to[4] = (long)((double)h * 100); to[5] = (long)(wide >> 70); }\n");
  load(shop);
  long values[6] = {};
  run("abcdef", values);
  EXPECT_THAT(values, testing::ElementsAre(10, 6144, 12, 12, 300, 6));
  shop.request.targets = {x86_64, aarch64};
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 4u);
}

TEST_P(ToolchainRunning, a_class_that_a_library_exports_is_made_and_used) {
  Workshop library;
  library.file("counter.cc",
               "struct Counter { explicit Counter(long from); ~Counter(); virtual long next(); long at; };\n"
               "Counter::Counter(long from) : at(from) {}\nCounter::~Counter() { at = 0; }\n"
               "long Counter::next() { return ++at; }\n");
  library.request.library = true;
  library.request.clang_flags = {"-fno-rtti"};
  library.request.targets = {x86_64};
  ASSERT_TRUE(policy_.allow_export("*"));
  load(library);
  const auto sent = library.path() / "counter.ifunc";
  ASSERT_TRUE(write_file_atomically(sent, library.bundle().bytes()));
  Workshop shop;
  shop.file(
      "foo.cc",
      "struct Counter { explicit Counter(long from); ~Counter(); virtual long next(); long at; };\n"
      "extern \"C\" void foo_main(void*, unsigned long n, void* t) {\n"
      "  Counter counter(static_cast<long>(n) * 10); counter.next(); *static_cast<long*>(t) = counter.next(); }\n");
  shop.request.against = {sent};
  shop.request.clang_flags = {"-fno-rtti"};
  shop.request.targets = {x86_64};
  load(shop);
  long value = 0;
  run("four", &value);
  EXPECT_EQ(value, 42);
}

TEST_P(ToolchainRunning, functions_of_the_application_are_called) {
  policy_.export_symbol("app_function", reinterpret_cast<void*>(&exported));
  auto shop = c_file("foo",
                     "int app_function(int);\n"
                     "void foo_main(void *p, size_t n, void *t) { (void)p; *(int *)t = app_function((int)n); }\n");
  shop.request.externs = {"app_function"};
  load(shop);
  int value = 0;
  run("abc", &value);
  EXPECT_EQ(value, 1003);
}

TEST_P(ToolchainRunning, large_code_with_jump_tables_and_constants_runs) {
  std::string text =
      "static double weights[] = {0.5, 1.5, 2.5};\nvoid foo_main(void *p, size_t n, void *t) { (void)p;\n"
      "double *x = t; switch (n) {\n";
  for (int i = 0; i < 300; ++i)
    text += fmt::format("case {}: x[0] = x[0] * {}.25 + weights[{}]; weights[1] += 1; break;\n", i, i, i % 3);
  load(c_file("foo", text + "} }\n"));
  double value = 2;
  run(std::string(250, 'x'), &value);  // 250 % 3 == 1
  EXPECT_DOUBLE_EQ(value, 2 * 250.25 + 1.5);
  run(std::string(1, 'x'), &value);
  EXPECT_DOUBLE_EQ(value, (2 * 250.25 + 1.5) * 1.25 + 2.5);
}

TEST_P(ToolchainRunning, cxx_sorts_with_a_lambda) {
  Workshop shop;
  shop.file("foo.cc",
            "#include <algorithm>\n#include <span>\n#include <threechains/ifunc.h>\n"
            "extern \"C\" void foo_main(void* p, size_t n, void*) {\n"
            "  std::span<char> letters(static_cast<char*>(p), n);\n"
            "  std::sort(letters.begin(), letters.end(), [](char a, char b) { return a > b; });\n"
            "  tc_reply(p, n);\n}\n");
  load(shop);
  run("the quick brown fox jumps over it", nullptr);
  std::string sorted = "the quick brown fox jumps over it";
  std::sort(sorted.rbegin(), sorted.rend());
  EXPECT_EQ(host_.replied, sorted);
}

TEST_P(ToolchainRunning, constructors_that_were_asked_for_run_once_in_order_before_the_first_call) {
  Workshop shop;
  shop.file(
      "foo.cc",
      "#include <threechains/ifunc.h>\n"
      "static int order[4], count;\n"
      "__attribute__((constructor(200))) static void second() { order[count++] = 2; tc_log(1, \"constructed\"); }\n"
      "__attribute__((constructor(101))) static void first() { order[count++] = 1; }\n"
      "struct Third { Third() { order[count++] = (int)tc_id(); } ~Third() { order[0] = 9; } } third;\n"
      "extern \"C\" void foo_main(void*, size_t, void* t) {\n"
      "  *static_cast<int*>(t) = order[0] * 1000 + order[1] * 100 + order[2] * 10 + count; }\n");
  shop.request.allow_ctors = true;
  load(shop);
  EXPECT_EQ(host_.logged, "");  // loading runs nothing
  int value = 0;
  run("", &value);
  EXPECT_EQ(value, 1273);
  EXPECT_EQ(host_.logged, "constructed");
  run("", &value);
  EXPECT_EQ(value, 1273);
}

TEST_P(ToolchainRunning, exceptions_are_caught_where_bitcode_is_compiled) {
  policy_.allow_library("*");
  Workshop shop;
  shop.file("foo.cc",
            "__attribute__((noinline)) static int check(unsigned long n) { if (n > 3) throw 41; return 0; }\n"
            "extern \"C\" void foo_main(void*, unsigned long n, void* t) {\n"
            "  try { check(n); } catch (int e) { *static_cast<int*>(t) = e + 1; } }\n");
  shop.file("foo.deps", "stdc++\ngcc_s\n");
  shop.request.clang_flags = {"-fexceptions"};
  if (GetParam() == SliceForm::object) {
    const auto refused = store_->load(shop.bundle());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, TC_ERR_NO_SLICE) << refused.error().message;
    return;
  }
  load(shop);
  int value = 0;
  run("abcdef", &value);
  EXPECT_EQ(value, 42);
}

TEST(ToolchainRunningSource, payload_functions_run_at_the_source) {
  const auto bundle = c_file("foo",
                             "size_t strlen(const char *);\n"
                             "size_t foo_payload_get_max_size(void *a, size_t n) { (void)n; return strlen(a) + 1; }\n"
                             "int foo_payload_init(void *p, size_t pn, void *a, size_t n) { (void)n; "
                             "__builtin_memcpy(p, a, pn); return 3; }\n"
                             "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n, (void)t; }\n")
                          .bundle();
  const auto source = target::PayloadCode::load(bundle);
  ASSERT_TRUE(source) << source.error().message;
  char args[] = "four", payload[8] = {};
  const auto size = reinterpret_cast<size_t (*)(void*, size_t)>((*source)->symbol("payload_get_max_size"))(args, 0);
  EXPECT_EQ(size, 5u);
  const auto init = reinterpret_cast<int (*)(void*, size_t, void*, size_t)>((*source)->symbol("payload_init"));
  EXPECT_EQ(init(payload, size, args, 0), 3);
  EXPECT_STREQ(payload, "four");
}

}  // namespace
}  // namespace tc::toolchain
