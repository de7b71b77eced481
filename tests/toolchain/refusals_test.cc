// SPDX-License-Identifier: Apache-2.0
//
// What cannot travel is refused with its name, its place, the reason and a remedy, in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build_test_support.h"

namespace tc::toolchain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An ifunc whose body is `body`.
Workshop body(const std::string& body, const std::string& before = "") {
  return c_file("foo", before +
                           "\nvoid foo_main(void *payload, size_t size, void *args) {\n(void)payload, (void)size, "
                           "(void)args;\n" +
                           body + "\n}\n");
}

TEST(ToolchainRefusals, an_undefined_symbol_is_named_with_its_line_and_the_remedies) {
  EXPECT_THAT(
      body("printff(\"hi\");", "int printff(const char *, ...);").refusal(),
      AllOf(HasSubstr("foo.c:5: 'printff' is called but neither the ifunc ABI nor a declared library defines it"),
            HasSubstr("foo.deps"), HasSubstr("#pragma comment(lib"), HasSubstr("--extern printff"),
            Not(HasSubstr("\n"))));
}

// It was built, and every node refused it.
TEST(ToolchainRefusals, variables_for_which_no_node_has_room_are_refused_with_the_largest_of_them) {
  const auto with = [](const char* megabytes) {
    return body("small[size] = 1, large[size] = small[size + 1], *(char*)args = large[size + 1];",
                std::string("static char small[100], large[") + megabytes + " * 1024 * 1024 - 100];");
  };
  EXPECT_TRUE(with("64").build());
  EXPECT_THAT(with("65").refusal(),
              AllOf(HasSubstr("foo.c:5: its variables are 68157440 bytes, of which 'large' is 68157340"),
                    HasSubstr("a node takes at most 67108864"), HasSubstr("tc_data")));
}

TEST(ToolchainRefusals, a_misspelt_function_of_the_abi_is_put_right) {
  EXPECT_THAT(body("tc_repli(payload, size);", "int tc_repli(void *, size_t);").refusal(),
              HasSubstr("did you mean 'tc_reply'?"));
}

TEST(ToolchainRefusals, a_symbol_that_the_application_exports_is_accepted_when_named) {
  auto shop = body("db_insert(payload);", "void db_insert(void *);");
  shop.request.externs = {"db_other"};
  EXPECT_THAT(shop.refusal(), HasSubstr("'db_insert'"));
  shop.request.externs = {"db_insert"};
  EXPECT_EQ(shop.bundle().manifest().imports, std::vector<std::string>{"db_insert"});
  shop.request.externs = {"*"};
  EXPECT_EQ(shop.bundle().manifest().imports, std::vector<std::string>{"db_insert"});
}

TEST(ToolchainRefusals, undefined_data_is_refused_like_a_function) {
  EXPECT_THAT(body("*(int *)args = counter;", "extern int counter;").refusal(), HasSubstr("'counter' is used but"));
}

TEST(ToolchainRefusals, what_only_dead_code_needs_is_not_missed) {
  EXPECT_TRUE(body("if (0) nowhere();", "void nowhere(void); void unused(void) { nowhere(); }")
                  .bundle()
                  .manifest()
                  .imports.empty());
}

TEST(ToolchainRefusals, a_libc_function_needs_its_library_declared) {
  EXPECT_THAT(body("puts(payload);", "int puts(const char *);").refusal(),
              AllOf(HasSubstr("'puts' is called"), HasSubstr("declare its library c in foo.deps"),
                    HasSubstr("#pragma comment(lib, \"c\")")));
  EXPECT_THAT(body("*(double *)args = cosh(*(double *)payload);", "double cosh(double);").refusal(),
              AllOf(HasSubstr("'cosh' is called"), HasSubstr("declare its library m in foo.deps")));
  EXPECT_THAT(body("nowhere(payload);", "int nowhere(const char *);").refusal(),
              HasSubstr("declare its library in foo.deps or with #pragma comment(lib, \"...\")"));
}

TEST(ToolchainRefusals, what_would_run_at_the_end_of_the_process_is_refused_with_what_to_do_instead) {
  const auto is_told =
      AllOf(HasSubstr("nothing may run a function of an ifunc when the process ends"),
            HasSubstr("before foo_main returns"), Not(HasSubstr("declare")), Not(HasSubstr("--extern")));
  for (const std::string name : {"atexit", "at_quick_exit"}) {
    auto shop = body(name + "(last);", "static volatile int seen; static void last(void) { seen = 1; } int " + name +
                                           "(void (*)(void));");
    EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("foo.c:5: '" + name + "' is called, but"), is_told));
    shop.file("foo.deps", "c\n");
    EXPECT_THAT(shop.refusal(), is_told) << "which no library has for others";
  }
  EXPECT_THAT(body("on_exit(last, 0);",
                   "static void last(int a, void *b) { (void)a, (void)b; } int on_exit(void (*)(int, void *), void *);")
                  .refusal(),
              is_told);
}

TEST(ToolchainRefusals, a_static_object_with_a_destructor_is_no_matter_of_exceptions) {
  Workshop shop;
  shop.file(
      "foo.cc",
      "#include <threechains/ifunc.h>\nextern int count;\nstruct One { One(); ~One(); int n; };\n"
      "inline One::One() : n(count) {}\ninline One::~One() { count = n; }\n"
      "extern \"C\" void foo_main(void *, size_t, void *args) {\n  static One one;\n  *(int *)args = ++one.n;\n}\n");
  shop.request.externs = {"count"};
  shop.request.clang_flags = {"-fno-threadsafe-statics"};
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("'__cxa_atexit' is called (for the destructor of a static object)"),
                                    HasSubstr("before foo_main returns"), Not(HasSubstr("exceptions"))));
}

TEST(ToolchainRefusals, a_weak_symbol_that_nobody_defines_is_told_what_becomes_of_it) {
  auto shop = body("*(int *)args = perhaps ? perhaps() : -1;", "extern __attribute__((weak)) int perhaps(void);");
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("foo.c:5: 'perhaps' is weak"), HasSubstr("give --extern perhaps"),
                                    HasSubstr("null where that exports none"), Not(HasSubstr("declare its library"))));
  shop.request.externs = {"perhaps"};
  EXPECT_EQ(shop.bundle().manifest().imports, std::vector<std::string>{"perhaps"});
}

TEST(ToolchainRefusals, what_compilers_call_by_themselves_is_free) {
  const auto bundle = body(
                          "struct s { char b[4096]; }; *(struct s *)args = *(struct s *)payload;\n"
                          "((unsigned __int128 *)args)[300] /= ((unsigned __int128 *)args)[301];")
                          .bundle();
  EXPECT_EQ(bundle.manifest().imports, (std::vector<std::string>{"__udivti3", "memcpy"}));
}

TEST(ToolchainRefusals, a_symbol_that_only_machine_code_needs_is_found_before_it_is_shipped) {
  auto shop = body("*(double *)args = __builtin_sin(*(double *)payload);");
  shop.request.objects = false;
  shop.request.clang_flags = {"-fno-math-errno"};  // llvm.sin, which becomes a call of sin
  EXPECT_THAT(shop.refusal(), HasSubstr("'sin' is called"));
}

TEST(ToolchainRefusals, an_address_written_into_the_code_is_refused) {
  EXPECT_THAT(body("*(volatile int *)0x7f1234567890 = 1;").refusal(),
              AllOf(HasSubstr("foo.c:5: address 0x7f1234567890 is written into the code"), HasSubstr("tc_data()")));
}

TEST(ToolchainRefusals, an_address_written_into_data_is_refused) {
  EXPECT_THAT(
      body("*(int **)args = table[size & 1];", "static int *const table[2] = {(int *)0x7f0000001000, 0};").refusal(),
      HasSubstr("address 0x7f0000001000"));
}

TEST(ToolchainRefusals, pointers_that_are_only_marks_are_accepted) {
  EXPECT_TRUE(body("*(void **)args = size ? (void *)-1 : (void *)1;").build().has_value());
}

TEST(ToolchainRefusals, a_thread_local_is_refused) {
  EXPECT_THAT(body("*(int *)args = ++seen;", "static _Thread_local int seen;").refusal(),
              AllOf(HasSubstr("'seen' is thread-local"), HasSubstr("foo.c")));
}

TEST(ToolchainRefusals, a_static_constructor_is_refused_unless_asked_for) {
  auto shop = body("*(int *)args = seen;",
                   "extern int start(void); static int seen;\n"
                   "__attribute__((constructor)) static void begin(void) { seen = start(); }");
  shop.request.externs = {"start"};
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("static constructor"), HasSubstr("--allow-ctors")));
  shop.request.allow_ctors = true;
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 2u);
}

TEST(ToolchainRefusals, a_global_object_with_a_constructor_is_refused) {
  Workshop shop;
  shop.file("foo.cc",
            "extern \"C\" int start(); struct S { int v = start(); } s;\n"
            "extern \"C\" void foo_main(void*, unsigned long, void* t) { *(int*)t = s.v; }\n");
  shop.request.externs = {"*"};
  EXPECT_THAT(shop.refusal(), HasSubstr("static constructor"));
}

TEST(ToolchainRefusals, inline_assembly_is_refused_unless_asked_for) {
  auto shop = body("__asm__ volatile(\"pause\");");
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("foo.c:5: inline assembly 'pause'"), HasSubstr("--allow-asm")));
  shop.request.allow_asm = true;
  EXPECT_TRUE(shop.build().has_value());
}

TEST(ToolchainRefusals, assembly_at_file_scope_is_refused) {
  EXPECT_THAT(body("", "__asm__(\".globl x\\nx: .long 0\\n\");").refusal(), HasSubstr("assembly at file scope"));
}

TEST(ToolchainRefusals, an_empty_compiler_barrier_is_no_assembly) {
  EXPECT_TRUE(body("__asm__ volatile(\"\" ::: \"memory\");").build().has_value());
}

TEST(ToolchainRefusals, a_gnu_ifunc_is_refused) {
  auto shop = body("chosen();",
                   "int which(void); static void one(void) {} static void two(void) { which(); }\n"
                   "static void *pick(void) { return which() ? one : two; }\n"
                   "void chosen(void) __attribute__((ifunc(\"pick\")));");
  shop.request.externs = {"which"};
  EXPECT_THAT(shop.refusal(), HasSubstr("GNU ifunc"));
}

TEST(ToolchainRefusals, the_abi_is_not_there_at_the_source) {
  EXPECT_THAT(body("",
                   "size_t foo_payload_bound(void *a, size_t n) { tc_log(1, a); return n; }\n"
                   "int foo_payload_init(void *a, size_t n, void *p, size_t *m) { (void)a, (void)n, (void)p, (void)m; "
                   "return 0; }")
                  .refusal(),
              HasSubstr("'tc_log' is called at the source"));
}

TEST(ToolchainRefusals, an_unknown_triple_is_named) {
  auto shop = body("");
  shop.request.targets = {"potato-linux-gnu"};
  EXPECT_THAT(shop.refusal(), HasSubstr("unknown target triple 'potato-linux-gnu'"));
  shop.request.targets = {"x86_64"};
  EXPECT_THAT(shop.refusal(), HasSubstr("'x86_64' is not a target triple like"));
  shop.request.targets = {"i686-linux-gnu"};
  EXPECT_THAT(shop.refusal(), HasSubstr("no 64-bit machine"));
  shop.request.targets = {x86_64, "x86_64-unknown-linux-gnu"};
  EXPECT_THAT(shop.refusal(), HasSubstr("are the same target"));
}

TEST(ToolchainRefusals, code_that_does_not_compile_is_refused) {
  EXPECT_THAT(body("this is not C").refusal(), HasSubstr("does not compile for x86_64-linux-gnu"));
}

TEST(ToolchainRefusals, files_that_are_no_source_are_refused) {
  Workshop shop;
  shop.request.inputs = {shop.path() / "foo.c"};
  EXPECT_THAT(shop.refusal(), HasSubstr("there is no such file"));
  shop.request.inputs = {shop.path() / "foo.go"};
  EXPECT_THAT(shop.refusal(), HasSubstr("no front end takes '.go' files"));
  shop.request.inputs = {};
  EXPECT_THAT(shop.refusal(), HasSubstr("no source file"));
}

TEST(ToolchainRefusals, exceptions_are_off_unless_asked_for_and_then_need_their_library) {
  Workshop shop;
  shop.file("foo.cc",
            "extern \"C\" void foo_main(void*, unsigned long n, void* t) {\n"
            "  try { if (n > 3) throw 1; } catch (int) { *(int*)t = 1; } }\n");
  EXPECT_THAT(shop.refusal(), HasSubstr("does not compile"));
  shop.request.clang_flags = {"-fexceptions"};
  EXPECT_THAT(shop.refusal(), HasSubstr("C++ exceptions and type information need"));
  shop.file("foo.deps", "stdc++\ngcc_s\n");
  const auto built = shop.build();
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_THAT(built->warnings, testing::ElementsAre(HasSubstr("unwind tables")));
}

TEST(ToolchainRefusals, cxx_symbols_are_shown_as_people_write_them) {
  Workshop shop;
  shop.file("foo.cc", "extern \"C\" void foo_main(void*, unsigned long n, void* t) { *(char**)t = new char[n]; }\n");
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("'operator new[](unsigned long, std::nothrow_t const&)'"),
                                    HasSubstr("_Znam"), HasSubstr("stdc++")));
  shop.file("foo.deps", "stdc++\n");
  EXPECT_EQ(shop.bundle().manifest().imports, (std::vector<std::string>{"_ZnamRKSt9nothrow_t", "tc_fail"}));
}

TEST(ToolchainRefusals, instructions_that_the_baseline_lacks_are_refused_and_travel_as_bitcode) {
  auto shop = c_file("foo",
                     "#include <immintrin.h>\n__attribute__((target(\"avx2\")))\n"
                     "void foo_main(void *p, size_t n, void *t) { (void)n;\n"
                     "  __m256i v = _mm256_loadu_si256(p); v = _mm256_sad_epu8(v, _mm256_shuffle_epi8(v, v));\n"
                     "  _mm256_storeu_si256(t, v); }\n");
  EXPECT_THAT(shop.refusal(),
              AllOf(HasSubstr("LLVM cannot make machine code for x86-64-v2"), HasSubstr("--no-object")));
  shop.request.objects = false;
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 1u);
}

TEST(ToolchainRefusals, leaving_out_everything_is_refused) {
  auto shop = body("");
  shop.request.objects = shop.request.bitcode = false;
  EXPECT_THAT(shop.refusal(), HasSubstr("leave nothing to ship"));
}

}  // namespace
}  // namespace tc::toolchain
