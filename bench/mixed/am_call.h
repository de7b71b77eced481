// SPDX-License-Identifier: Apache-2.0
//
// What the Active Messages of `ifunc bench mixed` consist of: a header alone.
#pragma once

#include <cstdint>
#include <cstring>

namespace tc::bench {

struct AmCall {
  uint32_t client;   // its number, by which the target knows whom to answer
  uint32_t is_long;  // 0: a small call
  uint64_t value;    // rounds of a long call; in its answer, the result
};
static_assert(sizeof(AmCall) == 16);

// The Active Messages' ids. A small call always runs in its handler.
inline constexpr unsigned am_small_id = 21, am_long_in_handler_id = 22, am_long_on_worker_id = 23, am_answer_id = 24;

// A header as a handler gets it, which need not be aligned. False: it has another size.
inline bool read_am_call(const void* header, size_t size, AmCall& into) noexcept {
  if (size != sizeof into) return false;
  std::memcpy(&into, header, sizeof into);
  return true;
}

}  // namespace tc::bench
