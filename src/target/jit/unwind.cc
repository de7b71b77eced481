// SPDX-License-Identifier: Apache-2.0
#include "target/jit/unwind.h"

// The unwinder's own interface (libgcc_s, and LLVM's libunwind as well); it has no header.
extern "C" void __register_frame(void* frames);
extern "C" void __deregister_frame(void* frames);

namespace tc::target::jit {

UnwindRegistration::UnwindRegistration(void* frames) noexcept : frames_(frames) { __register_frame(frames); }

UnwindRegistration::~UnwindRegistration() {
  if (frames_) __deregister_frame(frames_);
}

}  // namespace tc::target::jit
