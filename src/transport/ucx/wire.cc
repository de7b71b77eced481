// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/wire.h"

#include <cstring>
#include <new>

#include "transport/ucx/worker.h"

namespace tc::transport {

// On its way; deletes itself.
struct Wire::SignalMessage {
  uint64_t mark;
  uint8_t bytes[9];
};

namespace {

void on_batch_sent(void* request, ucs_status_t, void* user) noexcept {
  ucp_request_free(request);
  BatchOut::on_done(*static_cast<OutBuffer*>(user));
}

}  // namespace

Wire::~Wire() = default;

void Wire::open(std::shared_ptr<UcxEndpoint> endpoint, uint64_t their_token) noexcept {
  endpoint_ = std::move(endpoint);
  their_token_ = their_token;
}

uint64_t Wire::next_mark() noexcept {
  return (their_token_ & ~(uint64_t{0xffff} << 48)) | static_cast<uint64_t>(next_number_++) << 48;
}

void Wire::fail(std::string_view what, ucs_status_t status) noexcept {
  owner_.on_wire_lost(Error{TC_ERR_DISCONNECTED, fmt::format("{}: {}", what, ucx_words(status))});
}

void Wire::send_batch(OutBuffer& buffer, size_t size) noexcept {
  if (endpoint_ == nullptr) return;
  const uint64_t mark = next_mark();
  std::byte* const message = buffer.base() - sizeof mark;
  std::memcpy(message, &mark, sizeof mark);
  const auto request = endpoint_->send(am_batch, nullptr, 0, message, size + sizeof mark, &on_batch_sent, &buffer);
  if (UCS_PTR_IS_ERR(request)) return fail("sending frames", UCS_PTR_STATUS(request));
  if (request != nullptr) ++buffer.operations;
}

void Wire::send_signal(Signal signal, uint64_t value) noexcept {
  if (endpoint_ == nullptr) return;
  std::unique_ptr<SignalMessage> message(new (std::nothrow) SignalMessage{next_mark(), {}});
  if (message == nullptr) return owner_.on_wire_lost(Error{TC_ERR_NO_MEMORY, "no memory for a signal"});
  message->bytes[0] = static_cast<uint8_t>(signal);
  std::memcpy(message->bytes + 1, &value, sizeof value);
  const auto done = [](void* request, ucs_status_t, void* user) noexcept {
    ucp_request_free(request);
    delete static_cast<SignalMessage*>(user);
  };
  const auto request = endpoint_->send(am_signal, &message->mark, sizeof message->mark, message->bytes,
                                       sizeof message->bytes, done, message.get());
  if (UCS_PTR_IS_ERR(request)) return fail("sending a signal", UCS_PTR_STATUS(request));
  if (request != nullptr) (void)message.release();
}

}  // namespace tc::transport
