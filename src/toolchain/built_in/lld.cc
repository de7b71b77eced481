// SPDX-License-Identifier: Apache-2.0
#include "toolchain/built_in/lld.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

LLD_HAS_DRIVER(elf)

namespace tc::toolchain::built_in {

int lld(const std::vector<const char*>& arguments) {
  // It ends the process by itself when it is done, which saves it from giving back memory.
  return ::lld::elf::link(arguments, llvm::outs(), llvm::errs(), true, false) ? 0 : 1;
}

}  // namespace tc::toolchain::built_in
