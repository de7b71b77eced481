// SPDX-License-Identifier: Apache-2.0
//
// For our own programs: turns the exceptions of threechains.hpp into a Result.
//
// Threads: any.
#pragma once

#include <threechains/threechains.hpp>

#include <type_traits>
#include <utility>

#include "base/result.h"

namespace tc {

// The result of `action`, or the error that it throws.
template <class Action>
Result<std::invoke_result_t<Action>> attempt(Action&& action) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Action>>) {
      std::forward<Action>(action)();
      return {};
    } else {
      return std::forward<Action>(action)();
    }
  } catch (const threechains::Error& error) {
    return fail(error.status(), "{}", error.what());
  }
}

// The same, with text in front of the error: "registering code: ...".
template <class Action>
Result<std::invoke_result_t<Action>> attempt(std::string_view what, Action&& action) {
  auto result = attempt(std::forward<Action>(action));
  if (!result) return context(what, std::move(result).error());
  return result;
}

}  // namespace tc
