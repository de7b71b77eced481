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

#include "base/fd.h"
#include "base/result.h"

namespace tc::node {

// A file that data maps from its beginning, so that another process can have it, too.
class SharedFile {
 public:
  SharedFile() = default;  // none
  // TC_ERR_INVALID: `descriptor` is no file, or is shorter than `size`. TC_ERR_IO.
  static Result<SharedFile> of(int descriptor, size_t size);
  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  int descriptor() const noexcept { return descriptor_.get(); }
  bool is_writable() const noexcept { return is_writable_; }

 private:
  Fd descriptor_;
  bool is_writable_ = false;
};

struct ExposedData {
  std::string name;
  void* data;
  size_t size;
  SharedFile file;
};

using NamedData = std::vector<std::shared_ptr<const ExposedData>>;  // few: found by looking at each

template <typename Fits>
const std::shared_ptr<const ExposedData>& find_first(const NamedData& all, const Fits& fits) noexcept {
  static const std::shared_ptr<const ExposedData> none;
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return fits(*one); });
  return found != all.end() ? *found : none;
}

// Null: there is none of that name.
inline const std::shared_ptr<const ExposedData>& find(const NamedData& all, std::string_view name) noexcept {
  return find_first(all, [&](const ExposedData& one) { return one.name == name; });
}

// Null: no file is mapped there.
inline const std::shared_ptr<const ExposedData>& find_file_at(const NamedData& all, const void* address) noexcept {
  return find_first(all, [&](const ExposedData& one) { return one.data == address && one.file; });
}

}  // namespace tc::node
