// SPDX-License-Identifier: Apache-2.0
//
// A reference to a function, for the time of one call. It has two words, and allocates nothing. C++26 has
// std::function_ref.
//
// Thread: that of the function.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tc {

template <class Signature>
class FunctionRef;

template <class R, class... Arguments>
class FunctionRef<R(Arguments...)> {
 public:
  // `function` must live as long as this object is used.
  template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
             std::is_invocable_r_v<R, Function&, Arguments...>)
  FunctionRef(Function&& function) noexcept  // NOLINT: stands for the function
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Arguments... arguments) -> R {
          return (*static_cast<std::remove_reference_t<Function>*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  R operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  void* object_;
  R (*call_)(void*, Arguments...);
};

}  // namespace tc
