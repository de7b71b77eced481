// SPDX-License-Identifier: Apache-2.0
//
// Starts our threads inside the application's process: all of the library's begin here.
//
// Threads: any.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace tc {

// Starts a thread that blocks all signals, so that the application's handlers never run on it, but for those that the thread's
// own faults cause. TC_ERR_IO, with the system's words: a limit on tasks or memory leaves no thread for it. TC_ERR_NO_MEMORY.
[[nodiscard]] Result<std::thread> quiet_thread(std::move_only_function<void()> body) noexcept;

}  // namespace tc
