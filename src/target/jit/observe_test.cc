// SPDX-License-Identifier: Apache-2.0
//
// What debuggers and profilers see, and only when they were asked for.
#include <elf.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "target/testing/jit_test_base.h"

extern "C" jit_descriptor __jit_debug_descriptor;

namespace tc::target::jit {
namespace {

using testing::HasSubstr;

class Observe : public JitTest {
 protected:
  void SetUp() override {}
  void TearDown() override {
    ::unsetenv("TC_DEBUG_JIT");
    ::unsetenv("TC_PERF_JIT");
    std::filesystem::remove(perf_map());
  }
  void start_with(const char* variable) {
    if (variable) ::setenv(variable, "1", 1);
    JitTest::SetUp();
  }
  static size_t debugger_entries() {
    size_t count = 0;
    for (auto* entry = __jit_debug_descriptor.first_entry; entry; entry = entry->next_entry) ++count;
    return count;
  }
  static std::string perf_map() { return fmt::format("/tmp/perf-{}.map", ::getpid()); }
};

// The address that the object in the debugger's list gives for its .text.
uint64_t text_address(const jit_code_entry& entry) {
  Elf64_Ehdr header;
  std::memcpy(&header, entry.symfile_addr, sizeof header);
  const auto section = [&](size_t index) {
    Elf64_Shdr result;
    std::memcpy(&result, entry.symfile_addr + header.e_shoff + index * sizeof result, sizeof result);
    return result;
  };
  const auto names = section(header.e_shstrndx);
  for (size_t i = 0; i < header.e_shnum; ++i)
    if (std::strcmp(entry.symfile_addr + names.sh_offset + section(i).sh_name, ".text") == 0) return section(i).sh_addr;
  return 0;
}

TEST_F(Observe, nobody_is_told_by_default) {
  start_with(nullptr);
  const auto code = linked(compiled("helper_one", Effort::baseline));
  EXPECT_EQ(debugger_entries(), 0u);
  EXPECT_FALSE(std::filesystem::exists(perf_map()));
}

TEST_F(Observe, debuggers_find_the_code_while_it_lives) {
  start_with("TC_DEBUG_JIT");
  const auto object = compiled("helper_one", Effort::baseline);
  auto first = linked(object), second = linked(object), third = linked(object);
  ASSERT_EQ(debugger_entries(), 3u);
  EXPECT_EQ(text_address(*__jit_debug_descriptor.first_entry),
            reinterpret_cast<uint64_t>(std::min(third->symbol("helper"), third->symbol("one_main"))));
  second.reset();
  EXPECT_EQ(debugger_entries(), 2u);
  first.reset();
  third.reset();
  EXPECT_EQ(debugger_entries(), 0u);
}

TEST_F(Observe, perf_finds_names_and_addresses) {
  start_with("TC_PERF_JIT");
  const auto code = linked(compiled("helper_one", Effort::baseline));
  std::ifstream map(perf_map());
  const std::string text(std::istreambuf_iterator<char>(map), {});
  EXPECT_THAT(text, HasSubstr(fmt::format("{:x} ", reinterpret_cast<uint64_t>(code->symbol("one_main")))));
  EXPECT_THAT(text, HasSubstr(" test:one_main\n"));
}

}  // namespace
}  // namespace tc::target::jit
