// SPDX-License-Identifier: Apache-2.0
//
// Round trips and waiting, the same for everything that is compared. `By` has send(), poll(), count() (messages that
// came) and status(), and nothing stands between these loops and its own code. Thread: the one that measures.
#pragma once

#include "base/clock.h"
#include "base/result.h"

namespace tc::bench {

inline constexpr uint64_t ping_limit_ms = 60'000;

template <class By>
Status poll_until_count(By&& by, uint64_t wanted) {
  constexpr uint64_t polls_between_checks = 1u << 16;
  const auto deadline = Deadline::after_ms(ping_limit_ms);
  for (uint64_t polls = 1; by.count() < wanted; ++polls) {
    by.poll();
    if (polls % polls_between_checks != 0) continue;
    TC_CHECK(by.status());
    if (deadline.passed())
      return fail(TC_ERR_TIMEOUT, "{} of {} messages came within {} ms", by.count(), wanted, ping_limit_ms);
  }
  return {};
}

inline double per_second(uint64_t messages, uint64_t ns) {
  return static_cast<double>(messages) * 1e9 / static_cast<double>(ns);
}

// Half of a round trip, in ns.
template <class By>
Result<double> ping(By&& by, uint64_t rounds) {
  const auto before = by.count();
  const auto started = now_ns();
  for (uint64_t i = 1; i <= rounds; ++i) {
    by.send();
    TC_CHECK(poll_until_count(by, before + i));
  }
  const auto spent = now_ns() - started;
  TC_CHECK(by.status());
  return static_cast<double>(spent) / static_cast<double>(rounds) / 2;
}

// The other side of ping().
template <class By>
Status pong(By&& by, uint64_t rounds) {
  const auto before = by.count();
  for (uint64_t i = 1; i <= rounds; ++i) {
    TC_CHECK(poll_until_count(by, before + i));
    by.send();
  }
  return by.status();
}

}  // namespace tc::bench
