// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "common/statistics.h"

namespace tc::bench {

// A median stands beside its spread: the quartiles.
inline void put(nlohmann::ordered_json& object, const std::string& key, const Summary& value) {
  object[key] = value.median;
  object[key + "_spread"] = {value.low, value.high};
}

}  // namespace tc::bench
