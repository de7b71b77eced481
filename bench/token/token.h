// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench token`: an ifunc that forwards itself round a cluster, for nodes that share fewer cores.
// Thread: the one that measures.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "common/report.h"

namespace tc::bench {

struct TokenOptions {
  std::string addresses;  // of the cluster, comma-separated: TC_CLUSTER_ADDRESSES of `ifunc cluster`
  uint32_t hops = 40'000;
  int runs = 9;
  bool json = false;
};

// TC_ERR_INVALID without addresses; else the errors of connecting and calling.
Result<Report> run_token(const TokenOptions& options);

}  // namespace tc::bench
