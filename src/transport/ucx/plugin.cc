// SPDX-License-Identifier: Apache-2.0
//
// What libthreechains_ucx.so exports (transport/fabric.h).
#include "transport/ucx/fabric.h"

extern "C" __attribute__((visibility("default"))) tc::transport::Fabric* threechains_make_fabric(
    uint32_t version, const tc::transport::FabricOptions& options, tc::transport::Hub& hub, tc::Error& error) {
  if (version != tc::transport::fabric_plugin_version) return nullptr;
  try {
    auto made = tc::transport::UcxFabric::create(options, hub);
    if (made) return made->release();
    error = made.error();
  } catch (const std::exception& problem) {
    error = {TC_ERR_INTERNAL, problem.what()};
  }
  return nullptr;
}
