// SPDX-License-Identifier: Apache-2.0
#include "wire/object_format.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tc::object_format {
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

TEST(ObjectFormat, processors_and_elf_machines_lead_to_each_other) {
  for (const auto& one : known) EXPECT_EQ(arch_of_elf(elf_machine(one.arch)), one.arch);
  EXPECT_EQ(elf_machine(Arch::none), EM_NONE);
  EXPECT_EQ(arch_of_elf(EM_PPC64), Arch::none);
  EXPECT_EQ(relocation_of(Arch::none, R_X86_64_64), Relocation::unknown);
  EXPECT_EQ(relocation_of(Arch::riscv64, ~uint32_t{0}), Relocation::unknown);  // the table's own filler
}

}  // namespace
}  // namespace tc::object_format
