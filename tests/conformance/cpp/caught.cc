// SPDX-License-Identifier: Apache-2.0
// Throws what it catches, and has nothing to tidy up on the way: it needs nothing of the unwinder itself, which is in libgcc_s.
#include <threechains/ifunc.h>

#include <cstdint>

namespace {

struct Thrown {
  std::uint64_t value;
};

std::uint64_t calls;

[[gnu::noinline]] std::uint64_t may_throw(std::uint64_t n) {
  if (n % 2 == 0) throw Thrown{n};
  return n;
}

[[gnu::noinline]] std::uint64_t caught(std::uint64_t n) {
  try {
    return may_throw(n);
  } catch (const Thrown& thrown) {
    return 100 + thrown.value;
  }
}

}  // namespace

extern "C" void caught_main(void* payload, size_t, void*) {
  const std::uint64_t answer[] = {++calls, caught(*static_cast<const std::uint64_t*>(payload))};
  tc_reply(answer, sizeof answer);
}
