// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <cstring>
#include <span>

// What the target exposes under a name, as an array of T.
template <class T>
static std::span<T> data(const char* name) {
  size_t bytes = 0;
  auto* const found = static_cast<T*>(tc_data(name, &bytes));
  return {found, bytes / sizeof(T)};
}

extern "C" void increment_main(void* payload, size_t payload_size, void*) {
  const auto counter = data<uint64_t>("counter");
  if (payload_size != 8 || counter.empty()) return tc_fail(1, "no counter, or no number");
  uint64_t by;
  std::memcpy(&by, payload, 8);
  counter[0] += by;
  tc_reply(counter.data(), 8);
}
