// SPDX-License-Identifier: Apache-2.0
//
// Another process, for tests of code that is linked for one.
//
// Thread: the test's.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <type_traits>

#include "base/function_ref.h"
#include "memory/exported_memory.h"

namespace tc::memory::testing {

inline constexpr int could_not_map = 99;

// Runs `body` in a child process that has mapped `memory` by itself. Returns how it ended, as waitpid() says: 0 when `body`
// returned, could_not_map when it did not come to that.
int in_other_process(const ExportedMemory& memory, FunctionRef<void()> body);

// A value, at first all zero, that both processes see.
template <class T>
class Answer {
  static_assert(std::is_trivial_v<T>);

 public:
  Answer()
      : at_(static_cast<T*>(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() { munmap(at_, sizeof(T)); }

  T& operator*() const noexcept { return *at_; }
  T* operator->() const noexcept { return at_; }
  T* get() const noexcept { return at_; }

 private:
  T* at_;
};

}  // namespace tc::memory::testing
