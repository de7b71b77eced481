// SPDX-License-Identifier: Apache-2.0
#include "transport/network/ucx_library.h"

#ifdef TC_SELF_CONTAINED
#include <dlfcn.h>

#include <cstdlib>
#endif

namespace tc::transport {

#ifdef TC_SELF_CONTAINED

Status load_ucx_library() {
  const char* const named = std::getenv("TC_UCX");
  const char* const file = named != nullptr && *named != '\0' ? named : "libucp.so.0";
  if (dlopen(file, RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  const char* const words = dlerror();
  return fail(
      TC_ERR_UNSUPPORTED,
      "UCX cannot be loaded ({}); install it (Debian: libucx0; pip: libucx-cu12), name its libucp.so.0 by $TC_UCX, or "
      "choose another transport",
      words != nullptr ? words : file);
}

#else

Status load_ucx_library() { return {}; }

#endif

}  // namespace tc::transport
