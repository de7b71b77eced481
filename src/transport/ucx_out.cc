// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_out.h"

#include <cstring>

#include "transport/ucx_peer.h"
#include "transport/ucx_worker.h"

namespace tc::transport {

void UcxOut::on_sent(void* request, ucs_status_t, void* user) noexcept {
  auto* const buffer = static_cast<OutBuffer*>(user);
  ucp_request_free(request);
  if (buffer->owner != nullptr)
    buffer->owner->give_back(*buffer);
  else
    delete buffer;
}

// The message's header stands in the eight bytes in front of the first frame.
bool UcxOut::transmit(OutBuffer& buffer, size_t size) noexcept {
  UcxEndpoint* const endpoint = peer_.endpoint();
  if (endpoint == nullptr) return true;
  const uint64_t header = peer_.next_header();
  std::memcpy(buffer.memory, &header, sizeof header);
  const auto request =
      endpoint->send(am_batch, buffer.memory, sizeof header, buffer.base(), size, &UcxOut::on_sent, &buffer);
  if (UCS_PTR_IS_PTR(request)) return false;
  if (UCS_PTR_IS_ERR(request))
    peer_.lose(Error{TC_ERR_DISCONNECTED, "sending frames: " + ucx_words(UCS_PTR_STATUS(request))});
  return true;
}

void UcxOut::wake_peer() noexcept { peer_.send_signal(Signal::wake); }

}  // namespace tc::transport
