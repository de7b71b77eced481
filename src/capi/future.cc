// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;
using tc::capi::report;

namespace {

bool is_ready(const tc_future_t& future) noexcept { return future.future->ready.load(std::memory_order_acquire); }

// Runs the node until the answer is there or the time is over.
tc::Status progress_until_ready(tc_future_t& future, uint32_t timeout_ms) {
  auto& owner = *future.owner;
  const auto deadline = tc::Deadline::after_ms(timeout_ms);
  const auto ready = [&] { return is_ready(future); };
  const auto entry = enter(owner);
  TC_CHECK(owner.node->can_wait_for("an answer"));
  if (owner.gate.is_shared())
    owner.progress.wait_until(deadline, ready);
  else
    owner.node->poll_until(deadline, ready);
  return {};
}

// `will_call` becomes true unless the future is ready already. Then another thread may have called the function by the
// time this returns, and the function may have freed the future.
tc::Status notify_when_ready(tc_future_t& future, tc_future_function_t function, void* context, bool& will_call) {
  if (is_ready(future)) return {};
  const auto entry = enter(*future.owner);
  if (is_ready(future)) return {};
  future.owner->node->notify_when_ready(
      *future.future,
      [](void* handle) noexcept {
        auto& ready = *static_cast<tc_future_t*>(handle);
        ready.on_ready(&ready, ready.context);
      },
      &future);
  future.on_ready = function;
  future.context = context;
  will_call = true;
  return {};
}

}  // namespace

extern "C" {

tc_status_t tc_future_wait(tc_future_t* future, uint32_t timeout_ms) {
  TC_NOT_NULL(future);
  return guarded([&]() -> tc::Status {
    if (!is_ready(*future)) TC_CHECK(progress_until_ready(*future, timeout_ms));
    if (!is_ready(*future)) return tc::fail(TC_ERR_TIMEOUT, "{}: no answer yet", future->future->what());
    return {};
  });
}

tc_status_t tc_future_status(const tc_future_t* future) {
  TC_NOT_NULL(future);
  return guarded([&]() -> tc::Status {
    if (!is_ready(*future)) return tc::fail(TC_ERR_INVALID, "the future is not ready: it has no status yet");
    if (future->future->status != TC_OK) return tc::fail(tc::Error{future->future->status, future->future->message});
    return {};
  });
}

tc_status_t tc_future_on_ready(tc_future_t* future, tc_future_function_t function, void* context) {
  TC_NOT_NULL(future);
  TC_NOT_NULL(function);
  if (future->on_ready != nullptr) return report(TC_ERR_INVALID, "the future has a function to call already");
  bool will_call = false;
  const auto status = guarded([&] { return notify_when_ready(*future, function, context, will_call); });
  if (status == TC_OK && !will_call) {  // it was ready before
    future->on_ready = function;
    function(future, context);
  }
  return status;
}

int tc_future_ready(const tc_future_t* future) { return future != nullptr && is_ready(*future) ? 1 : 0; }

const void* tc_future_bytes(const tc_future_t* future, size_t* size) {
  const bool has_bytes = future != nullptr && is_ready(*future);
  if (size != nullptr) *size = has_bytes ? future->future->bytes.size() : 0;
  return has_bytes ? future->future->bytes.data() : nullptr;
}

const char* tc_future_error(const tc_future_t* future) {
  return future != nullptr && is_ready(*future) ? future->future->message.c_str() : "";
}

int32_t tc_future_code(const tc_future_t* future) {
  return future != nullptr && is_ready(*future) ? future->future->code : 0;
}

uint32_t tc_future_node(const tc_future_t* future) {
  return future != nullptr && is_ready(*future) ? future->future->node_id : 0;
}

tc_status_t tc_future_cancel(tc_future_t* future) {
  TC_NOT_NULL(future);
  return guarded([&]() -> tc::Status {
    if (is_ready(*future)) return {};
    const auto entry = enter(*future->owner);
    if (!is_ready(*future)) future->owner->node->cancel(*future->future);
    return {};
  });
}

void tc_future_free(tc_future_t* future) {
  if (future == nullptr) return;
  // The node still exists until the future's function has returned, because it calls all functions before it ends.
  if (!is_ready(*future) || future->future->will_notify.load(std::memory_order_acquire)) {
    const auto entry = enter(*future->owner);
    future->owner->node->forget(*future->future);
  }
  delete future;
}

}  // extern "C"
