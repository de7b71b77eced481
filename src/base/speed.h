// SPDX-License-Identifier: Apache-2.0
//
// Switches of optimizations (cmake -DTC_WITHOUT="hold;prefetch"), so that a benchmark can show the gain of each
// (docs/measuring.md, "What is done for speed alone"). Nothing else depends on them: the preset asan runs all tests
// with all of them off.
//
// Threads: any; these are constants.
#pragma once

namespace tc::speed {

#ifdef TC_WITHOUT_PREFETCH
inline constexpr bool prefetch = false;
#else
inline constexpr bool prefetch = true;  // of cache lines of a ring, before they are written
#endif

#ifdef TC_WITHOUT_HOLD
inline constexpr bool hold = false;
#else
inline constexpr bool hold = true;  // frames of one turn become visible in a ring together
#endif

#ifdef TC_WITHOUT_DIRECT
inline constexpr bool direct = false;
#else
inline constexpr bool direct = true;  // few sockets are read without asking epoll first
#endif

#ifdef TC_WITHOUT_ALIKE
inline constexpr bool alike = false;
#else
inline constexpr bool alike = true;  // calls with the same header run in a loop of their own
#endif

}  // namespace tc::speed
