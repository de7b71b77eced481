// SPDX-License-Identifier: Apache-2.0
//
// Names linked functions for `perf report`: one line each in /tmp/perf-PID.map, the place where perf looks.
#pragma once

#include <cstdint>
#include <string_view>

namespace tc::target::jit {

// Appends a line; does nothing when the file cannot be written. Threads: any.
void add_to_perf_map(uint64_t address, uint64_t size, std::string_view label, std::string_view function);

}  // namespace tc::target::jit
