// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;

namespace {

bool is_ready(const tc_future_t& future) noexcept { return future.future->ready.load(std::memory_order_acquire); }

// Lets the node go on until the answer is there or the time is over.
tc::Status progress_until_ready(tc_future_t& future, uint32_t timeout_ms) {
  auto& owner = *future.owner;
  const auto deadline = tc::Deadline::after_ms(timeout_ms);
  if (owner.node->inside_ifunc()) return tc::fail(TC_ERR_INVALID, "an ifunc that runs cannot wait for an answer");
  if (owner.gate.is_shared()) {
    owner.progress.wait_until(deadline, [&] { return is_ready(future); });
  } else {
    owner.node->poll_until(deadline, [&] { return is_ready(future); });
  }
  return {};
}

}  // namespace

extern "C" {

tc_status_t tc_future_wait(tc_future_t* future, uint32_t timeout_ms) {
  TC_NOT_NULL(future);
  return guarded([&]() -> tc::Status {
    if (!is_ready(*future)) TC_CHECK(progress_until_ready(*future, timeout_ms));
    if (!is_ready(*future)) return tc::fail(TC_ERR_BUSY, "{}: no answer yet", future->future->what());
    if (future->future->status != TC_OK) return tc::fail(tc::Error{future->future->status, future->future->message});
    return {};
  });
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

void tc_future_free(tc_future_t* future) {
  if (future == nullptr) return;
  if (!is_ready(*future)) {
    const auto pass = enter(*future->owner);
    future->owner->node->forget(*future->future);
  }
  delete future;
}

}  // extern "C"
