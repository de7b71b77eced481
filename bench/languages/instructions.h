// SPDX-License-Identifier: Apache-2.0
//
// How many instructions a call executes: the processor stops after each one (x86-64's trap flag). Exact, the same every
// time, and slow: some microseconds for each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace tc::bench {

// With those of the functions that it calls. Nothing on other processors. One thread of a process at a time.
std::optional<uint64_t> count_instructions(const std::function<void()>& call);

}  // namespace tc::bench
