// SPDX-License-Identifier: Apache-2.0
//
// How a thread computes with floating-point numbers: rounding, which exceptions raise a signal, and whether denormal numbers
// count as zero. Code may change that with fesetround(), feenableexcept() and the like. The ABI of each processor says that a
// call leaves it as it was, but injected code is not trusted with it: the next caller's code would compute other numbers, or
// end the process at its first 1.0/0. So whoever enters code reads the state before and restores it after each call.
//
// Flags of exceptions that occurred (FE_INEXACT and the like) are nobody's to rely on: ordinary code sets them all the time.
//
// Threads: any; each has a state of its own.
#pragma once

#include <cfenv>
#include <cstdint>

namespace tc::target {

class FloatState {
 public:
  // That of the calling thread.
  static FloatState now() noexcept {
    FloatState state;
#if defined(__x86_64__)
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(state.mxcsr_), "=m"(state.x87_) : : "memory");
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(state.fpcr_) : : "memory");
#elif defined(__riscv)
    asm volatile("frrm %0" : "=r"(state.rounding_) : : "memory");
#else
    state.rounding_ = std::fegetround();
#endif
    return state;
  }

  // Makes it the calling thread's. MXCSR is loaded without a look at it, because reading it takes ten times as long (5 ns
  // against 0.5 ns on a Zen 3). All others are cheaper to read than to write.
  void restore() const noexcept {
#if defined(__x86_64__)
    uint16_t x87 = 0;
    asm volatile("ldmxcsr %1\n\tfnstcw %0" : "=m"(x87) : "m"(mxcsr_) : "memory");
    if (x87 != x87_) [[unlikely]]
      write();
#else
    if (!is(now())) [[unlikely]]
      write();
#endif
  }

 private:
  FloatState() = default;

#if defined(__x86_64__)
  // An exception of the x87 unit that occurred stays pending, and would raise its signal at fldcw.
  [[gnu::cold]] void write() const noexcept { asm volatile("fnclex\n\tfldcw %0" : : "m"(x87_) : "memory"); }
  uint32_t mxcsr_ = 0;
  uint16_t x87_ = 0;
#elif defined(__aarch64__)
  bool is(const FloatState& other) const noexcept { return fpcr_ == other.fpcr_; }
  [[gnu::cold]] void write() const noexcept { asm volatile("msr fpcr, %0" : : "r"(fpcr_) : "memory"); }
  uint64_t fpcr_ = 0;
#elif defined(__riscv)
  bool is(const FloatState& other) const noexcept { return rounding_ == other.rounding_; }
  [[gnu::cold]] void write() const noexcept { asm volatile("fsrm %0" : : "r"(rounding_) : "memory"); }
  uint64_t rounding_ = 0;
#else
  bool is(const FloatState& other) const noexcept { return rounding_ == other.rounding_; }
  [[gnu::cold]] void write() const noexcept { (void)std::fesetround(rounding_); }
  int rounding_ = 0;
#endif
};

}  // namespace tc::target
