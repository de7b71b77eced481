// SPDX-License-Identifier: Apache-2.0
#include "target/foreign_llvm.h"

#include <dlfcn.h>

#include <filesystem>

namespace tc::target {

#ifdef TC_LLVM_SYMBOL_VERSION

Status check_no_foreign_llvm() {
  // llvm::cl::Option::addArgument(), as the loader looks it up for libLLVM.so: what has no versions matches as well.
  constexpr const char* symbol = "_ZN4llvm2cl6Option11addArgumentEv";
  Dl_info info;
  void* const found = dlvsym(RTLD_DEFAULT, symbol, TC_LLVM_SYMBOL_VERSION);
  if (found == nullptr || dladdr(found, &info) == 0 || info.dli_fname == nullptr) return {};
  if (std::filesystem::path(info.dli_fname).filename().string().starts_with("libLLVM")) return {};
  return fail(TC_ERR_UNSUPPORTED,
              "{} has an LLVM of its own, whose symbols hide those of ours: load it without RTLD_GLOBAL, use another "
              "process, or use the Python wheel of Three-Chains, whose LLVM is hidden",
              info.dli_fname);
}

#else

Status check_no_foreign_llvm() { return {}; }

#endif

}  // namespace tc::target
