// SPDX-License-Identifier: Apache-2.0
#include "target/relocation.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tc::target {
namespace {

// All that linkers write into objects of ours, and nothing else.
struct Known {
  Arch arch;
  std::vector<uint32_t> nothing;
  uint32_t relative;
  std::vector<uint32_t> symbol;
};

const Known known[] = {
    {Arch::x86_64, {R_X86_64_NONE}, R_X86_64_RELATIVE, {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT}},
    {Arch::aarch64,
     {R_AARCH64_NONE, 256},
     R_AARCH64_RELATIVE,
     {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT}},
    {Arch::riscv64, {R_RISCV_NONE}, R_RISCV_RELATIVE, {R_RISCV_64, R_RISCV_JUMP_SLOT}},
};

TEST(Relocation, of_each_processor_just_those_are_known_that_linkers_write) {
  for (const auto& one : known)
    for (uint32_t type = 0; type < 2000; ++type) {
      auto expected = Relocation::unknown;
      if (std::ranges::find(one.nothing, type) != one.nothing.end()) expected = Relocation::nothing;
      if (type == one.relative) expected = Relocation::relative;
      if (std::ranges::find(one.symbol, type) != one.symbol.end()) expected = Relocation::symbol;
      EXPECT_EQ(relocation_of(one.arch, type), expected) << "type " << type;
    }
}

}  // namespace
}  // namespace tc::target
