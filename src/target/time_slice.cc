// SPDX-License-Identifier: Apache-2.0
#include "target/time_slice.h"

#include <algorithm>

#include "base/clock.h"
#include "transport/transport.h"

namespace tc::target {

namespace {

constexpr uint64_t turn_ns = 50'000;
// A call that takes longer is long.
constexpr uint64_t long_call_ns = 20'000;
constexpr uint32_t short_runs_in_a_row = 16;
// The clock is read about as often while short code runs ...
constexpr uint64_t look_ns = 5'000;
// ... and at least once in so many calls.
constexpr uint64_t most_calls_a_look = 512;
// While code ran for so long, much may have come by descriptors that are not asked in each poll.
constexpr uint64_t late_ns = 1'000'000;
// Of so many turns one is sampled. The pauses differ, as links that have their turns in order would meet the same one.
constexpr uint32_t shortest_pause = 33, pauses = 63;

}  // namespace

// At once when it takes longer than before. When it takes less, in steps: twice as many calls as long as it was never
// long, else one more, as it may be long again.
void TimeSlice::learn(Code& code, uint64_t took_ns, uint32_t calls) noexcept {
  const uint64_t each_ns = took_ns / calls;
  if (each_ns > long_call_ns) {
    code.calls_a_look = 0;
    code.was_long = true;
    code.short_runs = 0;
    code.long_us = std::max(static_cast<uint32_t>(std::min<uint64_t>(each_ns / 1000, UINT32_MAX)),
                            code.long_us - code.long_us / 8);
    return code.settle_lane();
  }
  // Another thread runs it until it has been short for a while: some of its calls may be long.
  if (code.has_other_threads && code.was_long && code.calls_a_look == 0 && ++code.short_runs < short_runs_in_a_row)
    return;
  const uint64_t fitting = std::clamp<uint64_t>(look_ns / std::max<uint64_t>(each_ns, 1), 1, most_calls_a_look);
  const uint64_t before = code.calls_a_look;
  const uint64_t step = code.was_long ? before + 1 : std::max<uint64_t>(2 * before, 1);
  code.calls_a_look = static_cast<uint16_t>(std::min(fitting, step));
  code.settle_lane();
}

void TimeSlice::look_before(const Code& code) noexcept {
  if (calls_ != to_sample) return look(code.calls_a_look == 0);
  calls_ = 0;
  if (code.calls_a_look == 0) return look(true);
  state_ = samples;
  sampled_ns_ = now_ns();
}

bool TimeSlice::was_long() const noexcept { return looked_ns_ - begun_ns_ >= late_ns; }

bool TimeSlice::is_over_now() noexcept {
  if (state_ == measures) look(false);
  if (state_ == samples) end_sample();
  return state_ == over;
}

void TimeSlice::choose_sample() noexcept {
  random_ = random_ * 1'664'525 + 1'013'904'223;  // Numerical Recipes
  turns_to_sample_ = shortest_pause + (random_ >> 16) % pauses;
  calls_ = to_sample;
}

void TimeSlice::end_sample() noexcept {
  const uint64_t took = now_ns() - sampled_ns_;
  if (last_ != nullptr && last_->use != nullptr && calls_ != 0) last_->use->add_in_place(took, calls_);
  state_ = goes_on;
}

void TimeSlice::look(bool long_code_follows) noexcept {
  const uint64_t now = now_ns();
  bool was_long = false;
  if (calls_ == to_sample) calls_ = 0;
  if (looked_ns_ == 0) {
    begun_ns_ = now;
  } else {
    const uint64_t took = now - looked_ns_;
    if (last_ != nullptr && calls_ != 0) {
      learn(*last_, took, calls_);
      if (last_->use != nullptr) last_->use->add_in_place(took, calls_);
    }
    was_long = took > long_call_ns;
    if (took >= late_ns && transport_ != nullptr) transport_->poll_state.late = transport_->poll_state.urgent = true;
  }
  looked_ns_ = now;
  calls_ = 0;
  state_ = now - begun_ns_ >= turn_ns ? over : long_code_follows ? measures : goes_on;
  if ((long_code_follows || was_long) && transport_ != nullptr) transport_->flush();
}

}  // namespace tc::target
