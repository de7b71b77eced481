// SPDX-License-Identifier: Apache-2.0
//
// Lets exceptions pass through linked code: tells the unwinder of this process where its frame table is.
//
// Thread: any, one at a time for one registration.
#pragma once

#include <utility>

namespace tc::target::jit {

// A registered frame table; withdrawn when destroyed, which must be before its memory goes.
class UnwindRegistration {
 public:
  UnwindRegistration() = default;
  // `frames` is the start of an .eh_frame section that ends with a zero word.
  explicit UnwindRegistration(void* frames) noexcept;
  ~UnwindRegistration();
  UnwindRegistration(UnwindRegistration&& other) noexcept : frames_(std::exchange(other.frames_, nullptr)) {}
  UnwindRegistration& operator=(UnwindRegistration&& other) noexcept {
    std::swap(frames_, other.frames_);
    return *this;
  }

 private:
  void* frames_ = nullptr;
};

}  // namespace tc::target::jit
