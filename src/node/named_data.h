// SPDX-License-Identifier: Apache-2.0
//
// The data that the application gives to ifuncs by name. A table never changes: a call on another thread keeps the one that
// there was when it was handed over. So the entry of data that was withdrawn is kept as long as a call may have the data.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tc::node {

struct ExposedData {
  std::string name;
  void* data;
  size_t size;
};

using NamedData = std::vector<std::shared_ptr<const ExposedData>>;  // few: found by looking at each

// Null: there is none of that name.
inline const std::shared_ptr<const ExposedData>& find(const NamedData& all, std::string_view name) noexcept {
  static const std::shared_ptr<const ExposedData> none;
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one->name == name; });
  return found != all.end() ? *found : none;
}

}  // namespace tc::node
