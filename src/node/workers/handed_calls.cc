// SPDX-License-Identifier: Apache-2.0
#include "node/workers/handed_calls.h"

#include <spdlog/logger.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log_format.h"

namespace tc::node {

HandedCall& HandedCalls::add(std::unique_ptr<HandedCall> handed) {
  auto& call = *handed;
  call.data = invocation_.exposed();
  call.target_args = executor_.target_args;
  call.outcome = call.call;
  calls_.push_back(std::move(handed));  // from here on nothing fails
  call.use = codes_.store().begin_use(*call.code);
  if (call.call.link != nullptr) link_of(call.call)->receiver().on_handed_over();
  on_threads_ += call.in_cell ? 0 : 1;
  if (!call.code->concurrent && !call.in_cell) {
    exclusive_runs_ = true;
    executor_.set_exclusive_elsewhere(true);
  }
  common_.work.calls = true;
  return call;
}

void HandedCalls::each_call(ShowCall show) const {
  for (const auto& handed : calls_) {
    const auto& call = handed->call;
    if (!call.wants_reply) continue;
    show(call.has_return_address ? call.return_address.value().instance
         : call.link != nullptr  ? link_of(call)->peer().instance
                                 : common_.self.instance,
         call.header.token);
  }
}

void HandedCalls::say_what_runs() const noexcept try {
  for (const auto& handed : calls_) {
    const LogContext about({.ifunc = handed->code->name(), .content_id = &handed->code->id()});
    common_.log.warn("{} ends when ifunc '{}' has ended", common_.self.label, handed->code->name());
  }
} catch (const std::exception&) {  // no memory for the sentence
}

// ---- What a call says

void HandedCalls::reply(HandedCall& handed, ByteView bytes) noexcept {
  count(handed);
  send(handed, [&] { invocation_.effects().send_reply(handed.call, bytes); });
}

// Who has the answer finds the call counted.
void HandedCalls::count(HandedCall& handed) noexcept {
  if (std::exchange(handed.is_counted, true)) return;
  executor_.count_elsewhere();
  if (handed.code->use != nullptr) ++handed.code->use->calls;
}

// Where there is no memory for an answer, its link ends, as for an answer of a call that runs here.
void HandedCalls::send(const HandedCall& handed, FunctionRef<void()> send) noexcept try {
  try {
    send();
  } catch (const std::bad_alloc&) {
    common_.reserve.release();
    const Error why{TC_ERR_NO_MEMORY, "no memory"};
    if (handed.call.link != nullptr)
      link_of(handed.call)->channel().disconnect(why);
    else
      invocation_.effects().fail_later(handed.call, why);
  }
} catch (const std::exception&) {  // nor for the memory of that
}

// ---- Its end

void HandedCalls::end(HandedCall& handed) {
  count(handed);
  measure(handed);
  send(handed, [&] { invocation_.effects().end(handed.outcome); });
  target::TimeSlice::learn(*handed.code, handed.took_ns, 1);
  take_out(handed);
}

// A cell says how long its call ran, and is not believed more than it can be.
void HandedCalls::measure(const HandedCall& handed) noexcept {
  auto* const use = handed.code->use;
  if (use == nullptr) return;
  const auto latency_ns = now_ns() - handed.since_ns;
  use->latency.add(latency_ns);
  use->run.add(std::min(handed.took_ns, latency_ns));
}

void HandedCalls::fail(HandedCall& handed, const Error& why) noexcept {
  if (!handed.outcome.answered) send(handed, [&] { invocation_.effects().refuse(handed.call, why); });
  take_out(handed);
}

void HandedCalls::take_out(HandedCall& handed) {
  auto& code = *handed.code;
  on_threads_ -= handed.in_cell ? 0 : 1;
  if (!code.concurrent && !handed.in_cell) {
    exclusive_runs_ = false;
    executor_.set_exclusive_elsewhere(false);
  }
  codes_.store().end_use(code, handed.use);
  if (handed.call.link != nullptr) link_of(handed.call)->receiver().on_handed_back();
  freed_ = true;
  std::erase_if(calls_, [&](const auto& one) { return one.get() == &handed; });
}

}  // namespace tc::node
