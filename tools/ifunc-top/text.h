// SPDX-License-Identifier: Apache-2.0
//
// Text for the cells of a table: of a known width, with nothing in it that a terminal would obey, and numbers that are short.
//
// Threads: any; plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tc::top {

// Where text stands in a cell that is wider.
enum class Side { left, right };

// The text in exactly `width` cells of a terminal: padded, or cut, with '~' as its last letter. What other nodes say is
// hostile: control characters, letters without a width, those that turn the direction of writing, and bytes that are no
// UTF-8 become '?'.
std::string fit(std::string_view text, size_t width, Side side = Side::left);
// The same, as wide as it is.
std::string printable(std::string_view text);
// How many cells of a terminal printable(text) takes.
size_t cells(std::string_view text);
// For a terminal that knows ASCII only: a '?' for each cell of another letter. `text` is printable.
std::string only_ascii(std::string_view text);

// "0", "0.3", "12", "1.2k", "3.4M"; at most five letters.
std::string short_count(double value);
// "512 B", "3.4 MB"; at most six letters.
std::string short_bytes(double bytes);
// "512 ns", "3.4 ms", "2.0 h"; at most eight letters.
std::string short_time(double ns);
// How long a node has been there: "33s", "12m33s", "2h05m", "12d3h", "213d".
std::string short_age(uint64_t ns);

}  // namespace tc::top
