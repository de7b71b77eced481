// SPDX-License-Identifier: Apache-2.0
//
// The seam to PMIx. Behind it stands libthreechains_pmix.so, the only part of a node that links libpmix; it is loaded
// with dlopen when a node is told to bootstrap by PMIx, so that hosts without MPI need no libpmix.
#pragma once

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

inline constexpr const char* pmix_plugin_name = "libthreechains_pmix.so";
// What the plug-in exports, found by dlsym under this name. `version` must be pmix_plugin_version.
inline constexpr const char* pmix_factory_name = "threechains_make_pmix";
inline constexpr uint32_t pmix_plugin_version = 2;
using PmixFactory = Bootstrap* (*)(uint32_t version, const Options* options);  // null when versions differ

}  // namespace tc::node::bootstrap
