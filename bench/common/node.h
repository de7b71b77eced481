// SPDX-License-Identifier: Apache-2.0
//
// Nodes of a benchmark, through the public C API.
#pragma once

#include <threechains/threechains.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "common/transport.h"

namespace tc::bench {

// A status of the C API with the library's own sentence about it; `what` was tried.
Status check(tc_status_t status, const char* what);

// A node that is set up so. The caller destroys it.
Result<tc_node_t*> make_node(const NodeSettings& settings);
// The same, with what its transport needs.
Result<tc_node_t*> make_node(const BenchTransport& transport, NodeSettings settings);

// Drives the node until all code that it holds is compiled for this CPU; TC_ERR_TIMEOUT after 30 s.
Status wait_until_tuned(tc_node_t* node);

// The `index`-th of comma-separated addresses.
std::string element(const std::string& list, uint32_t index);

}  // namespace tc::bench
