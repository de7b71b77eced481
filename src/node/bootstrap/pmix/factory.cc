// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/pmix/client.h"
#include "node/bootstrap/pmix_plugin.h"

extern "C" __attribute__((visibility("default"))) tc::node::bootstrap::Bootstrap* threechains_make_pmix(
    uint32_t version, const tc::node::bootstrap::Options* options) {
  if (version != tc::node::bootstrap::pmix_plugin_version || options == nullptr) return nullptr;
  return new tc::node::bootstrap::PmixClient(*options);
}
