// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <string_view>

namespace {

struct Unreadable {
  char letter;
};
struct Empty {};

uint32_t number(std::string_view text) {
  if (text.empty()) throw Empty();  // caught by nobody
  uint32_t value = 0;
  for (const char letter : text) {
    if (letter < '0' || letter > '9') throw Unreadable{letter};
    value = 10 * value + static_cast<uint32_t>(letter - '0');
  }
  return value;
}

uint32_t sum(std::string_view text) {
  const auto plus = text.find_first_of("+");
  return plus == text.npos ? number(text) : number(text.substr(0, plus)) + sum(text.substr(plus + 1));
}

}  // namespace

extern "C" void parse_main(void* payload, size_t size, void*) {
  try {
    uint32_t value = sum({static_cast<const char*>(payload), size});
    char digits[10];
    char* first = digits + sizeof digits;
    do *--first = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    tc_reply(first, static_cast<size_t>(digits + sizeof digits - first));
  } catch (const Unreadable& problem) {
    char message[] = "'?' is no digit";
    message[1] = problem.letter;
    tc_fail(1, message);
  }
}
