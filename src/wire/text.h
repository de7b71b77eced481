// SPDX-License-Identifier: Apache-2.0
//
// Checks text that a peer sent, because it ends in logs, terminals and file names.
//
// Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace tc::wire {

// Sentences: lines, tabs and UTF-8 pass, what could steer a terminal becomes '?'.
std::string words(std::string_view text);

// Labels: printable ASCII.
bool printable(std::string_view text) noexcept;
// Addresses and triples: no spaces either.
bool visible(std::string_view text) noexcept;

}  // namespace tc::wire
