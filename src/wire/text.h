// SPDX-License-Identifier: Apache-2.0
//
// Checks text that a peer sent, because it gets into logs, terminals and file names.
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace tc::wire {

// Makes a sentence safe. Line feeds, tabs and UTF-8 stay. Characters that could control a terminal become '?'.
std::string words(std::string_view text);

// True: the text is printable ASCII. For labels.
bool printable(std::string_view text) noexcept;
// True: the text is printable ASCII without spaces. For addresses and triples.
bool visible(std::string_view text) noexcept;

}  // namespace tc::wire
