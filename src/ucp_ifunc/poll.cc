// SPDX-License-Identifier: Apache-2.0
//
// One look at a slot.
#include "base/clock.h"
#include "ucp_ifunc/context.h"
#include "ucp_ifunc/errors.h"

namespace tc::ucp {

namespace {

// How long a frame may take to arrive from its first word on, before it is given up as damaged. Far more than any
// network needs; a slot that is blocked longer would look like a peer that sends nothing.
constexpr uint64_t arrival_limit_ns = 1'000'000'000;

ucs_status_t refuse(ContextState& state, std::byte* buffer, Error error) {
  slot::clear(buffer);
  error.message = fmt::format("polling {}: {}", static_cast<const void*>(buffer), error.message);
  state.report(error);
  return report(error);
}

ucs_status_t wait_or_give_up(ContextState& state, std::byte* buffer, size_t size, const slot::Header& header) {
  if (state.slots.arriving_ns(buffer, now_ns()) < arrival_limit_ns) return UCS_ERR_NO_MESSAGE;
  state.slots.gave_up(buffer);
  return refuse(state, buffer, {TC_ERR_MALFORMED, slot::describe(slot::Look::incomplete, header, size)});
}

ucs_status_t run(ContextState& state, std::byte* buffer, const slot::Header& header, void* target_args) {
  auto* const payload = buffer + slot::header_bytes;
  Receiver::Use use;
  auto code = state.receiver.code_for(header, payload, use);
  if (!code) [[unlikely]]
    return refuse(state, buffer, std::move(code).error());
  // Before it runs: what it sends may lead its peer to write the next frame here.
  slot::clear(buffer);
  auto ran = state.receiver.run(**code, payload, header.payload_size, target_args);
  if (!ran) [[unlikely]] {
    state.report(ran.error());
    return report(ran.error());
  }
  return UCS_OK;
}

ucs_status_t receive(ucp_context_h context, std::byte* buffer, size_t size, void* target_args) {
  slot::Header header;
  const auto look = slot::look(buffer, size, header);
  if (look == slot::Look::nothing) return UCS_ERR_NO_MESSAGE;
  auto& state = state_of(context);
  if (look == slot::Look::frame) [[likely]] {
    if ((header.flags & slot::flag_ordered) != 0 || state.slots.is_new(buffer, header))
      return run(state, buffer, header, target_args);
    slot::clear(buffer);  // bytes of the last frame that landed twice
    return UCS_ERR_NO_MESSAGE;
  }
  if (look == slot::Look::incomplete) return wait_or_give_up(state, buffer, size, header);
  const auto code = look == slot::Look::too_long ? TC_ERR_TOO_LARGE : TC_ERR_MALFORMED;
  return refuse(state, buffer, {code, slot::describe(look, header, size)});
}

bool begins_frame(const void* buffer, size_t size) noexcept {
  return size >= slot::header_bytes && slot::begins_frame(static_cast<const std::byte*>(buffer));
}

// `progress` moves the network on, and says whether that may have brought something.
template <class Progress>
ucs_status_t poll(ucp_context_h context, void* buffer, size_t size, void* target_args, Progress progress) noexcept {
  if (context == nullptr || buffer == nullptr) [[unlikely]]
    return report({TC_ERR_INVALID, "a poll wants a context and a buffer"});
  return guarded([&]() -> ucs_status_t {
    auto status = UCS_ERR_NO_MESSAGE;
    if (begins_frame(buffer, size)) status = receive(context, static_cast<std::byte*>(buffer), size, target_args);
    if (status != UCS_ERR_NO_MESSAGE) return status;
    if (!progress() || !begins_frame(buffer, size)) return status;
    return receive(context, static_cast<std::byte*>(buffer), size, target_args);
  });
}

}  // namespace

}  // namespace tc::ucp

extern "C" {

ucs_status_t ucp_poll_ifunc(ucp_context_h context, void* buffer, size_t buffer_size, void* target_args,
                            ucp_worker_h worker) {
  return tc::ucp::poll(context, buffer, buffer_size, target_args,
                       [worker] { return worker != nullptr && ucp_worker_progress(worker) != 0; });
}

ucs_status_t ucp_ifunc_2021_poll(ucp_context_h context, void* buffer, size_t buffer_size, void* target_args) {
  return tc::ucp::poll(context, buffer, buffer_size, target_args, [context] {
    tc::ucp::state_of(context).progress_own_workers();
    return true;
  });
}

}  // extern "C"
