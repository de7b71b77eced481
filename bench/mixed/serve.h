// SPDX-License-Identifier: Apache-2.0
//
// The target's process of `ifunc bench mixed`: it obeys the orders of the clients' process. Thread: the only one that uses
// what is here.
#pragma once

#include <array>
#include <string_view>

#include "common/processes.h"

namespace tc::bench {

// Where a long call runs: as an ifunc at a node with one thread or with `mixed_threads`, in the handler of an Active
// Message, or on a worker thread that such a handler hands it to.
enum class MixedMode : uint8_t { ifunc, ifunc_threads, am, am_worker };
inline constexpr std::array mixed_modes{MixedMode::ifunc, MixedMode::ifunc_threads, MixedMode::am,
                                        MixedMode::am_worker};
inline constexpr uint32_t mixed_threads = 2;
std::string_view mode_name(MixedMode mode) noexcept;

Status serve_mixed(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
