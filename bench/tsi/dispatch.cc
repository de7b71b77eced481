// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "common/stand_in_host.h"
#include "target/code_store.h"
#include "target/receiver.h"
#include "tsi/measure.h"

namespace tc::bench {

namespace {

// Frames that have all arrived.
class FramesInMemory final : public transport::InStream {
 public:
  explicit FramesInMemory(size_t calls) : bytes_((calls + 2) * wire::alignment) {
    const auto begin =
        (wire::alignment - reinterpret_cast<uintptr_t>(bytes_.data()) % wire::alignment) % wire::alignment;
    first_ = bytes_.data() + begin + wire::header_bytes;
    for (size_t i = 0; i < calls; ++i)
      transport::store_header(first_ + i * wire::alignment, wire::encode(wire::Kind::call, 0, 0, 1));
    end_ = first_ + calls * wire::alignment;
    rewind();
  }
  void rewind() { cursor_ = first_; }
  bool refill() noexcept override { return false; }
  void release() noexcept override {}

 private:
  Bytes bytes_;
  std::byte* first_;
};

class NoOtherFrames final : public target::FrameHandler {
 public:
  explicit NoOtherFrames(const target::NumberTable& numbers) noexcept : numbers_(numbers) {}
  bool on_frame(const wire::FrameHeader&, std::byte*) override { return false; }
  const target::NumberTable& numbers() const noexcept override { return numbers_; }
  void on_effects() override {}
  void on_broken(std::string) override {}

 private:
  const target::NumberTable& numbers_;
};

}  // namespace

Result<double> cached_dispatch_ns(size_t calls, int rounds) {
  target::Policy policy;
  target::CodeStoreOptions options;
  options.use_bitcode = false;
  TC_ASSIGN(const auto store, target::CodeStore::create(options, policy, [](target::Code&) {}));
  TC_ASSIGN(auto bundle, tsi_variant(SliceForm::object, "dispatch"));
  TC_ASSIGN(auto* code, store->load(std::move(bundle)));
  target::NumberTable numbers;
  TC_CHECK(numbers.bind(0, *code));
  StandInHost host;
  NoOtherFrames others(numbers);
  target::Executor executor(host);
  uint64_t counter = 0;
  executor.target_args = &counter;
  FramesInMemory frames(calls);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    frames.rewind();
    const auto started = now_ns();
    size_t taken = 0;
    for (size_t more = 1; more != 0 && taken != calls; taken += more) {
      executor.begin_turn();  // which the machine may end early
      more = target::receive(frames, numbers, executor, others, calls - taken, SIZE_MAX);
    }
    const auto per_call = static_cast<double>(now_ns() - started) / static_cast<double>(calls);
    if (taken != calls) return fail(TC_ERR_INTERNAL, "{} of {} frames ran", taken, calls);
    best = round == 0 ? per_call : std::min(best, per_call);
  }
  return best;
}

}  // namespace tc::bench
