// SPDX-License-Identifier: Apache-2.0
//
// A file of settings: one `key = value` a line, comments behind # at the beginning of a line.
//
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tc {

struct Setting {
  std::string key, value;
  unsigned line = 0;
};

// In the order of the file. The value is what stands behind the first =, without blanks at its ends; it may be empty.
// TC_ERR_NOT_FOUND and TC_ERR_IO, as read_file(); TC_ERR_INVALID names the line.
Result<std::vector<Setting>> read_settings(const std::string& path);

}  // namespace tc
