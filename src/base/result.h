// SPDX-License-Identifier: Apache-2.0
//
// The result of a function that can fail: a value, or a status with a sentence.
//
// The sentence is written where both values are known ("frame is 10 bytes when its header says 20"). Callers pass it on
// unchanged, or put their own context in front with context(). Nothing here throws.
//
// Threads: any.
#pragma once

#include <fmt/format.h>
#include <threechains/status.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace tc {

struct Error {
  tc_status_t code = TC_ERR_INTERNAL;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// The name of a status, for messages: "timeout".
std::string_view status_name(tc_status_t code) noexcept;

// Converts a status from the wire. Unknown values become TC_ERR_INTERNAL.
tc_status_t status_from_wire(uint32_t value) noexcept;

template <class... Args>
[[nodiscard, gnu::cold]] std::unexpected<Error> fail(tc_status_t code, fmt::format_string<Args...> text,
                                                     Args&&... args) {
  return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...)});
}

// The system's sentence for an errno: "Connection refused".
std::string system_words(int error);

// Passes an error on.
[[nodiscard]] inline std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

// Passes an error on with text in front: "loading tsi.ifunc: no slice for riscv64".
[[nodiscard]] inline std::unexpected<Error> context(std::string_view where, Error error) {
  error.message = fmt::format("{}: {}", where, error.message);
  return std::unexpected(std::move(error));
}

}  // namespace tc

// Returns the error of `expression` from the enclosing function, if it has one.
#define TC_CHECK(expression)                                    \
  do {                                                          \
    if (auto tc_check_ = (expression); !tc_check_) [[unlikely]] \
      return ::tc::fail(std::move(tc_check_).error());          \
  } while (false)

#define TC_CONCAT_(a, b) a##b
#define TC_CONCAT(a, b) TC_CONCAT_(a, b)

// TC_ASSIGN(auto x, f()); declares x with the value of f(), or returns f()'s error.
#define TC_ASSIGN(declaration, expression) TC_ASSIGN_(TC_CONCAT(tc_assign_, __LINE__), declaration, expression)
#define TC_ASSIGN_(temporary, declaration, expression) \
  auto temporary = (expression);                       \
  if (!temporary) [[unlikely]]                         \
    return ::tc::fail(std::move(temporary).error());   \
  declaration = std::move(*temporary)
