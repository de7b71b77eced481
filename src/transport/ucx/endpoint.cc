// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/endpoint.h"

#include <cstring>

#include "base/clock.h"
#include "transport/ucx/worker.h"

namespace tc::transport {

namespace {

// UCX reads as far as the lengths in an address say, so zeroes are put behind it.
constexpr size_t address_slack = 4096;
// A forced close is local and quick. If it takes longer all the same, the request ends with the worker.
constexpr uint64_t close_ms = 100;

}  // namespace

Result<std::unique_ptr<UcxEndpoint>> UcxEndpoint::open(ucp_worker_h worker, ByteView address, unsigned& failures) {
  std::unique_ptr<UcxEndpoint> made(new UcxEndpoint(failures));
  Bytes padded(address.size() + address_slack);
  std::memcpy(padded.data(), address.data(), address.size());
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(padded.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxEndpoint::on_error;
  params.err_handler.arg = made.get();
  made->worker_ = worker;
  if (const auto status = ucp_ep_create(worker, &params, &made->endpoint_); status != UCS_OK) {
    made->endpoint_ = nullptr;
    return fail(TC_ERR_UNSUPPORTED, "no UCX transport leads to the peer (is UCX_TLS the same on both sides?): {}",
                ucx_message(status));
  }
  ucp_request_param_t nothing{};
  made->settling_ = ucp_ep_flush_nbx(made->endpoint_, &nothing);
  return made;
}

void UcxEndpoint::on_error(void* self, ucp_ep_h, ucs_status_t status) noexcept {
  auto& endpoint = *static_cast<UcxEndpoint*>(self);
  endpoint.failure_ = status;
  ++endpoint.failures_;
}

bool UcxEndpoint::is_settled() const noexcept {
  return failed() || !UCS_PTR_IS_PTR(settling_) || ucp_request_check_status(settling_) != UCS_INPROGRESS;
}

UcxEndpoint::~UcxEndpoint() {
  if (endpoint_ == nullptr) return;
  if (UCS_PTR_IS_PTR(settling_)) ucp_request_free(settling_);
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &params);
  if (!UCS_PTR_IS_PTR(request)) return;
  const auto deadline = Deadline::after_ms(close_ms);
  while (ucp_request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) ucp_worker_progress(worker_);
  ucp_request_free(request);
}

}  // namespace tc::transport
