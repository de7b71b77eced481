// SPDX-License-Identifier: Apache-2.0
#include "node/workers/worker.h"

#include "base/clock.h"
#include "node/call_effects.h"
#include "node/call_log.h"
#include "node/workers/workers.h"

namespace tc::node {

void Worker::run(HandedCall& handed) noexcept {
  handed_ = &handed;
  executor_.target_args = handed.target_args;
  executor_.running() = std::move(handed.outcome);
  const auto begun = now_ns();
  {
    const target::Executor::Scope scope(executor_);
    (void)executor_.run_prepared(*handed.code, handed.payload, handed.size);
  }
  handed.took_ns = now_ns() - begun;
  handed.outcome = std::move(executor_.running());
  executor_.reset();
  handed_ = nullptr;
}

// ---- What an ifunc asks

void* Worker::data(std::string_view name, size_t* size) noexcept {
  const auto* const exposed = find(*handed_->data, name).get();
  if (exposed == nullptr) return nullptr;
  if (!handed_->rights->is_all() &&
      ask({.kind = Ask::Kind::touch, .handed = *handed_, .call = executor_.running(), .name = name}) != TC_OK)
    return nullptr;
  if (size != nullptr) *size = exposed->size;
  return exposed->data;
}

// Nothing that follows depends on how it leaves.
tc_status_t Worker::reply(ByteView bytes) noexcept try {
  auto& call = executor_.running();
  if (call.answered) return TC_ERR_INVALID;
  if (!call.wants_reply) return TC_OK;
  workers_.post_reply(*handed_, bytes);
  call.answered = true;
  call.has_effects = true;
  return TC_OK;
} catch (const std::bad_alloc&) {
  executor_.running().lost_reply = true;
  return TC_ERR_NO_MEMORY;
}

tc_status_t Worker::forward(uint32_t node, ByteView payload) noexcept {
  return ask(
      {.kind = Ask::Kind::forward, .handed = *handed_, .call = executor_.running(), .node = node, .payload = payload});
}

tc_status_t Worker::forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return ask({.kind = Ask::Kind::forward_as,
              .handed = *handed_,
              .call = executor_.running(),
              .node = node,
              .name = name,
              .payload = payload});
}

tc_status_t Worker::inject(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return ask({.kind = Ask::Kind::inject,
              .handed = *handed_,
              .call = executor_.running(),
              .node = node,
              .name = name,
              .payload = payload});
}

void Worker::fail(int32_t code, std::string_view message) noexcept {
  CallEffects::fail(executor_.running(), code, message);
}

void Worker::log(int level, std::string_view message) noexcept {
  common_.call_log.write(executor_.running(), level, message);
}

target::IfuncHost::InProgress Worker::in_progress() const noexcept {
  return {&executor_, handed_ != nullptr ? caller_label(handed_->call) : std::string_view()};
}

// Nobody is to blame for the time that this takes: the node's thread may be in a call.
tc_status_t Worker::ask(Ask ask) noexcept {
  const target::Executor::Pause pause(executor_);
  workers_.post(*this, ask);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return ask.is_done; });
  return ask.status;
}

// With the lock: once it is free, the one who asked may be gone.
void Worker::on_done(Ask& ask) noexcept {
  const std::scoped_lock lock(mutex_);
  ask.is_done = true;
  done_.notify_one();
}

}  // namespace tc::node
