// SPDX-License-Identifier: Apache-2.0
//
// Freeing really frees, and memory is writable or executable, never both.
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "target/testing/jit_test_base.h"

namespace tc::target::jit {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool counts_memory = false;  // freed memory stays in quarantine
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool counts_memory = false;
#else
constexpr bool counts_memory = true;
#endif
#else
constexpr bool counts_memory = true;
#endif

class Memory : public JitTest {};

size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

size_t resident_kib() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

// Does growth of `cycles` more cycles stay below what the first ones could explain?
template <class Cycle>
void expect_flat(int before, int cycles, Cycle cycle) {
  for (int i = 0; i < before; ++i) cycle();
  const auto mapped = mappings(), resident = resident_kib();
  for (int i = 0; i < cycles; ++i) cycle();
  EXPECT_LE(mappings(), mapped + 4);
  if (counts_memory) {
    EXPECT_LE(resident_kib(), resident + 1024);
  }
}

TEST_F(Memory, ten_thousand_links_and_frees_leave_nothing_behind) {
  const auto object = compiled("data", Effort::baseline);
  expect_flat(500, 10'000, [&] {
    const auto code = linked(object);
    function<void()>(*code, "data_fill")();
  });
}

TEST_F(Memory, failed_links_leave_nothing_behind) {
  const auto object = compiled("missing", Effort::baseline);
  expect_flat(500, 10'000, [&] { EXPECT_FALSE(jit_->link(object, "missing", resolver(), {}, nullptr)); });
}

TEST_F(Memory, compilations_leave_nothing_behind) {
  const auto data = test_file("data.bc"), calls = test_file("calls.bc"), bad = test_file("bad_assembly.bc");
  int round = 0;
  expect_flat(600, 2400, [&] {
    EXPECT_TRUE(jit_->compile(data, Effort::baseline, Assembly::refused, fmt::format("ifunc {}", round)));
    EXPECT_TRUE(jit_->compile(calls, Effort::baseline, Assembly::refused, "calls"));
    if (++round % 8 == 0) {
      EXPECT_FALSE(jit_->compile(bad, Effort::baseline, Assembly::allowed, "bad"));
    }
  });
}

TEST_F(Memory, tuned_compilations_leave_nothing_behind) {
  const auto calls = test_file("calls.bc");
  expect_flat(300, 600, [&] { EXPECT_TRUE(jit_->compile(calls, Effort::tuned, Assembly::refused, "calls")); });
}

TEST_F(Memory, what_llvm_gave_up_on_is_not_tried_again) {
  if (!llvm::sys::getHostCPUFeatures().contains("xop")) GTEST_SKIP() << "not an x86-64 CPU";
  const auto bitcode = test_file("xop.bc");
  expect_flat(5, 1000, [&] { (void)jit_->compile(bitcode, Effort::baseline, Assembly::refused, "xop"); });
}

TEST_F(Memory, code_that_is_kept_takes_no_mappings_of_its_own) {
  const auto object = compiled("helper_one", Effort::baseline);
  std::vector<std::unique_ptr<LinkedCode>> kept;
  kept.push_back(linked(object));
  const auto before = mappings(), resident = resident_kib();
  for (int i = 0; i < 5000; ++i) kept.push_back(linked(object));
  EXPECT_LE(mappings(), before + 8);
  if (counts_memory) {
    EXPECT_LE(resident_kib(), resident + 5000 * 2) << "over 2 KiB for each";
  }
  EXPECT_EQ(function<int(int)>(*kept.back(), "one_main")(0), 11);
}

TEST_F(Memory, no_mapping_is_writable_and_executable) {
  const auto code = linked(compiled("data", Effort::tuned));
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(" rwx"), line.npos) << line;
}

TEST_F(Memory, code_can_not_be_written_where_it_runs) {
  const auto code = linked(compiled("data", Effort::baseline));
  const auto entry = reinterpret_cast<uintptr_t>(code->symbol("data_count"));
  std::ifstream maps("/proc/self/maps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights;
    if (entry < begin || entry >= end) continue;
    found = true;
    EXPECT_EQ(rights.substr(0, 3), "r-x") << line;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tc::target::jit
