// SPDX-License-Identifier: Apache-2.0
//
// What our commands say to wrong usage: which word is wrong, and which one may have been meant. Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tc::command {

// The one of `known` that differs least from `word`, when it is a word with a typing error or the beginning of a longer one;
// else empty.
std::string_view closest(std::string_view word, const std::vector<std::string>& known);

// One sentence about arguments that `app` did not take: "ifunc serve: there is no option '--lisen'; did you mean
// '--listen'? `ifunc serve --help` lists them". `app` is as the failed parse has left it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tc::command
