// SPDX-License-Identifier: Apache-2.0
#include "node/config.h"

#include "base/settings.h"
#include "capi/handles.h"

using tc::capi::guarded;

namespace {

const tc::node::Option& option_of(const tc_option_t* handle) noexcept {
  return *reinterpret_cast<const tc::node::Option*>(handle);
}

}  // namespace

extern "C" {

tc_status_t tc_config_create(tc_config_t** config) {
  TC_NOT_NULL(config);
  return guarded([&]() -> tc::Status {
    *config = std::make_unique<tc_config>().release();
    return {};
  });
}

void tc_config_free(tc_config_t* config) { delete config; }

tc_status_t tc_config_set(tc_config_t* config, const char* key, const char* value) {
  TC_NOT_NULL(config);
  TC_NOT_NULL(key);
  TC_NOT_NULL(value);
  return guarded([&] { return config->config.set(key, value); });
}

tc_status_t tc_config_read(tc_config_t* config, const char* file) {
  TC_NOT_NULL(config);
  TC_NOT_NULL(file);
  return guarded([&]() -> tc::Status {
    std::vector<tc::KnownSetting> known;
    for (const auto& option : tc::node::options()) known.push_back({option.name, option.value, option.repeatable});
    auto changed = config->config;  // a file with a fault sets nothing
    const auto set = [&](std::string_view name, std::string_view value) { return changed.set(name, value); };
    TC_CHECK(tc::read_settings(file, known, set));
    config->config = std::move(changed);
    return {};
  });
}

tc_status_t tc_config_set_log_function(tc_config_t* config, tc_log_function_t function, void* context) {
  TC_NOT_NULL(config);
  return guarded([&]() -> tc::Status {
    config->config.log_sink = nullptr;
    if (function != nullptr)
      config->config.log_sink = [function, context](int level, const char* line) { function(context, level, line); };
    return {};
  });
}

size_t tc_option_count(void) { return tc::node::options().size(); }

const tc_option_t* tc_option_at(size_t index) {
  const auto options = tc::node::options();
  return index < options.size() ? reinterpret_cast<const tc_option_t*>(&options[index]) : nullptr;
}

const char* tc_option_name(const tc_option_t* option) { return option != nullptr ? option_of(option).name : ""; }
const char* tc_option_value(const tc_option_t* option) { return option != nullptr ? option_of(option).value : ""; }
const char* tc_option_default(const tc_option_t* option) { return option != nullptr ? option_of(option).preset : ""; }
const char* tc_option_help(const tc_option_t* option) { return option != nullptr ? option_of(option).help : ""; }
const char* tc_option_group(const tc_option_t* option) { return option != nullptr ? option_of(option).group : ""; }
int tc_option_repeatable(const tc_option_t* option) {
  return option != nullptr && option_of(option).repeatable ? 1 : 0;
}

}  // extern "C"
