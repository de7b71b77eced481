// SPDX-License-Identifier: Apache-2.0
//
// Reads the values of options. Errors name the value and what would be right; the name of the option is added by the
// caller.
//
// Thread: any.
#pragma once

#include <charconv>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tc::node {

template <class T>
Status parse_number(std::string_view value, T& out, T least, T most) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < least || number > most)
    return fail(TC_ERR_INVALID, "'{}' when it is a whole number from {} to {}", value, least, most);
  out = number;
  return {};
}

// A number with an optional K, M or G behind it, which are powers of 1024.
inline Status parse_bytes(std::string_view value, size_t& out, size_t least, size_t most) {
  const auto unit = value.empty() ? std::string_view::npos : std::string_view("KMGkmg").find(value.back());
  const unsigned shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit % 3) + 1);
  const auto digits = value.substr(0, value.size() - (shift == 0 ? 0 : 1));
  size_t number = 0;
  if (!parse_number(digits, number, size_t{0}, std::numeric_limits<size_t>::max() >> shift) ||
      (number << shift) < least || (number << shift) > most)
    return fail(TC_ERR_INVALID, "'{}' when it is a number of bytes from {} to {}; K, M and G may stand behind it",
                value, least, most);
  out = number << shift;
  return {};
}

inline Status parse_power_of_two(std::string_view value, size_t& out, size_t least, size_t most) {
  size_t number = 0;
  TC_CHECK(parse_bytes(value, number, least, most));
  if ((number & (number - 1)) != 0) return fail(TC_ERR_INVALID, "{} when it is a power of two", number);
  out = number;
  return {};
}

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

// `words`: all names in words, for the error.
template <class T>
Status parse_choice_of(std::string_view value, T& out, std::string_view words,
                       std::initializer_list<Choice<T>> choices) {
  for (const auto& choice : choices)
    if (choice.name == value) return out = choice.value, Status{};
  return fail(TC_ERR_INVALID, "'{}' when it is {}", value, words);
}

inline Status parse_switch(std::string_view value, bool& out) {
  return parse_choice_of<bool>(value, out, "on or off", {{"on", true}, {"off", false}});
}

// The parts that are not empty.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (const auto part = text.substr(0, end); !part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace tc::node
