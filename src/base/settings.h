// SPDX-License-Identifier: Apache-2.0
//
// Files of settings, in TOML: `name = value`, where a value is a string, a number, true or false, or a list of these.
//
// Threads: any.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tc {

// What a file may set.
struct KnownSetting {
  std::string_view name;
  // What a value looks like, in the words of the table of options. "on|off" is true or false in a file; "NUMBER" and
  // "MILLISECONDS" are numbers; "BYTES" is a number or a string; everything else is a string. One that ends in ",..." or
  // ":..." may be a list, too.
  std::string_view value;
  bool repeatable = false;  // may be a list, each of whose values is taken by itself
};

// Takes one value of a setting, as a command line would have it: true and false are "on" and "off".
using TakeSetting = std::function<Status(std::string_view name, std::string_view value)>;

// Reads the file, hands all values to `take` in the order of the file, and returns how many names it sets.
// TC_ERR_INVALID names every fault, each in a line of its own, with the line of the file: what is no TOML, what is not
// known, what has the wrong type, and what `take` refuses. `take` has had the values that are right then, so it should
// set a copy. TC_ERR_NOT_FOUND and TC_ERR_IO as read_file(). TC_ERR_UNSUPPORTED: this build reads no such files.
Result<size_t> read_settings(const std::string& path, std::span<const KnownSetting> known, const TakeSetting& take);

}  // namespace tc
