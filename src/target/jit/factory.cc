// SPDX-License-Identifier: Apache-2.0
//
// The one symbol that the plug-in exports (jit_factory_name). The library must stay loaded once it was opened: LLVM
// registers itself in places that do not forget.
//
// TC_DEBUG_JIT=1 makes linked code known to debuggers, TC_PERF_JIT=1 names it for perf.
#include <cstdlib>
#include <string_view>

#include "target/jit/plugin.h"

namespace {

bool asked_for(const char* variable) {
  const char* value = ::secure_getenv(variable);
  return value && std::string_view(value) == "1";
}

}  // namespace

extern "C" __attribute__((visibility("default"))) tc::target::Jit* threechains_make_jit(uint32_t version) {
  if (version != tc::target::jit_plugin_version) return nullptr;
  const tc::target::jit::LinkerOptions options{.debugger = asked_for("TC_DEBUG_JIT"), .perf = asked_for("TC_PERF_JIT")};
  return tc::target::jit::make_jit(options).release();
}
