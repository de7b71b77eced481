// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <algorithm>
#include <span>

// The payload as an array of T.
template <class T>
static std::span<T> array_of(void* payload, size_t size) {
  return {static_cast<T*>(payload), size / sizeof(T)};
}

template <class T>
static void reply_with(const T& value) {
  tc_reply(&value, sizeof value);
}

extern "C" void largest_main(void* payload, size_t size, void*) {
  const auto numbers = array_of<uint32_t>(payload, size);
  if (numbers.empty()) return tc_fail(1, "no numbers");
  const auto remainder = [](uint32_t number) { return number % 10; };
  reply_with(*std::ranges::max_element(numbers, {}, remainder));  // the one with the largest last digit
}
