// SPDX-License-Identifier: Apache-2.0
//
// A self-contained build has no UCX inside, and its plug-in for UCX names no library: that would be sought where the wheel does
// not know it. Such a build loads UCX itself, before the plug-in: the file that $TC_UCX names, else the system's libucp.so.0.
#pragma once

#include "base/result.h"

namespace tc::transport {

// Thread: the node's, before it opens the plug-in. Does nothing in other builds. TC_ERR_UNSUPPORTED: there is no UCX; the
// sentence says how to get it.
Status load_ucx_library();

}  // namespace tc::transport
