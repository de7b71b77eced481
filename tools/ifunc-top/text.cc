// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace tc::top {
namespace {

struct Letter {
  std::string_view bytes;
  uint32_t code = 0;
  size_t width = 1;
};

constexpr std::string_view unknown = "?";

struct Range {
  uint32_t first, last;
};
bool is_in(uint32_t code, std::span<const Range> ranges) {
  return std::ranges::any_of(ranges, [code](Range range) { return code >= range.first && code <= range.last; });
}

// What a terminal would obey, would not show, or would show over its neighbours.
bool is_unfit(uint32_t code) {
  static constexpr Range ranges[]{
      {0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x300, 0x36f},     {0x483, 0x489},       {0x591, 0x5bd},
      {0x600, 0x61c},   {0x64b, 0x65f},   {0x1160, 0x11ff}, {0x180b, 0x180f},   {0x1ab0, 0x1aff},     {0x1dc0, 0x1dff},
      {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20ff},   {0xd800, 0xf8ff},     {0xfe00, 0xfe0f},
      {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xfff0, 0xffff}, {0x1d165, 0x1d1ad}, {0xe0000, 0xffffffff}};
  return is_in(code, ranges);
}

bool is_wide(uint32_t code) {
  static constexpr Range ranges[]{{0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
                                  {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                                  {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  return is_in(code, ranges);
}

// How long the UTF-8 of a letter is that begins so; 0: nothing begins so.
size_t length_from(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

// The first letter of `text`, which is not empty, and moves behind it.
Letter take_letter(std::string_view& text) {
  static constexpr std::array<uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text.front());
  const auto length = length_from(first);
  Letter letter{.bytes = text.substr(0, length), .code = length < 2 ? first : first & (0x7fu >> length)};
  bool is_whole = length != 0 && letter.bytes.size() == length;
  for (size_t i = 1; is_whole && i < length; ++i) {
    const auto next = static_cast<unsigned char>(letter.bytes[i]);
    is_whole = (next & 0xc0) == 0x80;
    letter.code = letter.code << 6 | (next & 0x3f);
  }
  // Bytes that are no letter are taken one at a time: what follows them may be one.
  if (!is_whole || letter.code < least[length]) return text.remove_prefix(1), Letter{.bytes = unknown};
  text.remove_prefix(length);
  if (is_unfit(letter.code)) return {.bytes = unknown};
  letter.width = is_wide(letter.code) ? 2 : 1;
  return letter;
}

std::string with_digit(double value) { return fmt::format("{:.{}f}", value, value < 9.95 ? 1 : 0); }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) out += take_letter(text).bytes;
  return out;
}

size_t cells(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += take_letter(text).width;
  return width;
}

std::string fit(std::string_view text, size_t width, Side side) {
  std::string out;
  size_t used = 0, used_before_cut = 0, bytes_before_cut = 0;
  while (!text.empty()) {
    const auto letter = take_letter(text);
    if (used + letter.width > width) {
      if (width == 0) return {};
      out.resize(bytes_before_cut);
      return out + std::string(width - 1 - used_before_cut, ' ') + "~";
    }
    out += letter.bytes;
    used += letter.width;
    if (used < width) used_before_cut = used, bytes_before_cut = out.size();
  }
  const std::string padding(width - used, ' ');
  return side == Side::left ? out + padding : padding + out;
}

std::string only_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto letter = take_letter(text);
    out += letter.bytes.size() == 1 ? std::string(letter.bytes) : std::string(letter.width, '?');
  }
  return out;
}

std::string short_count(double value) {
  static constexpr std::array units{"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  if (value >= 999.5) return fmt::format(">999{}", units[unit]);
  if (unit == 0 && (value == 0 || (value >= 1 && value == static_cast<double>(static_cast<int>(value)))))
    return fmt::format("{:.0f}", value);
  return with_digit(value) + units[unit];
}

std::string short_bytes(double bytes) {
  static constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < units.size(); ++unit) bytes /= 1000;
  if (bytes >= 999.5) return fmt::format(">1 {}", "RB");
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{} {}", with_digit(bytes), units[unit]);
}

std::string short_time(double ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  static constexpr std::array<Unit, 6> units{
      {{1e3, "us"}, {1e6, "ms"}, {1e9, "s"}, {60e9, "min"}, {3600e9, "h"}, {86'400e9, "d"}}};
  if (ns < 999.5) return fmt::format("{:.0f} ns", ns);
  auto unit = units.begin();
  for (auto next = unit + 1; next != units.end() && ns >= next->ns * 0.9995; ++next) unit = next;
  return fmt::format("{} {}", with_digit(ns / unit->ns), unit->name);
}

std::string short_age(uint64_t ns) {
  const auto seconds = ns / 1'000'000'000;
  const auto days = seconds / 86'400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
  if (days >= 100) return fmt::format("{}d", days);
  if (days != 0) return fmt::format("{}d{}h", days, hours);
  if (hours != 0) return fmt::format("{}h{:02}m", hours, minutes);
  if (minutes != 0) return fmt::format("{}m{:02}s", minutes, seconds % 60);
  return fmt::format("{}s", seconds);
}

}  // namespace tc::top
