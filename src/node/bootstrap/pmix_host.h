// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap by the launcher that started this process, if that one speaks PMIx.
#pragma once

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

// Loads the plug-in. TC_ERR_INVALID when no PMIx launcher started this process; TC_ERR_UNSUPPORTED names the places
// that were tried.
Result<std::unique_ptr<Bootstrap>> open_pmix(const Options& options);

}  // namespace tc::node::bootstrap
