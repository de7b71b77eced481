// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

extern "C" {

tc_status_t tc_config_create(tc_config_t** config) {
  TC_NOT_NULL(config);
  return tc::capi::guarded([&]() -> tc::Status {
    *config = std::make_unique<tc_config>().release();
    return {};
  });
}

void tc_config_free(tc_config_t* config) { delete config; }

tc_status_t tc_config_set(tc_config_t* config, const char* key, const char* value) {
  TC_NOT_NULL(config);
  TC_NOT_NULL(key);
  TC_NOT_NULL(value);
  return tc::capi::guarded([&] { return config->config.set(key, value); });
}

}  // extern "C"
