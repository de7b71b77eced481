// SPDX-License-Identifier: Apache-2.0
//
// Starts our threads inside the application's process: all of the library's begin here.
//
// Threads: any.
#pragma once

#include <functional>
#include <thread>

namespace tc {

// Starts a thread that blocks all signals, so that the application's handlers never run on it, but for those that the thread's
// own faults cause. Throws what std::thread throws.
std::thread quiet_thread(std::move_only_function<void()> body);

}  // namespace tc
