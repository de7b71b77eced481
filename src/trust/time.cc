// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "trust/grant.h"

namespace tc::trust {

namespace {

// The digits of `text` at that place as a number; -1: they are not digits.
int number(std::string_view text, size_t at, size_t digits) noexcept {
  int value = -1;
  const auto part = text.substr(at, digits);
  for (const char letter : part)
    if (letter < '0' || letter > '9') return -1;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

// Does it look like "2027-01-31" or "2027-01-31T12:00:00Z"?
bool has_shape(std::string_view text) noexcept {
  if (text.size() != 10 && text.size() != 20) return false;
  if (text[4] != '-' || text[7] != '-') return false;
  return text.size() == 10 || (text[10] == 'T' && text[13] == ':' && text[16] == ':' && text[19] == 'Z');
}

}  // namespace

std::string to_text(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto second = (time - day).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                     second / 60 % 60, second % 60);
}

Result<Time> parse_time(std::string_view text) {
  using namespace std::chrono;
  if (has_shape(text)) {
    const int year_number = number(text, 0, 4), month_number = number(text, 5, 2), day_number = number(text, 8, 2);
    const bool has_time = text.size() == 20;
    const int hour = has_time ? number(text, 11, 2) : 0;
    const int minute = has_time ? number(text, 14, 2) : 0;
    const int second = has_time ? number(text, 17, 2) : 0;
    const bool all_digits = year_number >= 0 && month_number >= 0 && day_number >= 0;
    const bool a_time = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
    if (all_digits && a_time) {
      const year_month_day date{year(year_number), month(static_cast<unsigned>(month_number)),
                                day(static_cast<unsigned>(day_number))};
      if (date.ok()) return Time(sys_days(date)) + hours(hour) + minutes(minute) + seconds(second);
    }
  }
  return fail(TC_ERR_INVALID, "'{}' is no time: one is 2027-01-31 or 2027-01-31T12:00:00Z", text.substr(0, 40));
}

}  // namespace tc::trust
