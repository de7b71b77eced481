// SPDX-License-Identifier: Apache-2.0
//
// Ifuncs as UCX Active Messages: the frame's header is the message's, payload and code are its data. UCX keeps the
// bytes together, so the header says "ordered" and nothing is checked over the body.
#include <cstring>

#include "ucp_ifunc/context.h"
#include "ucp_ifunc/errors.h"

namespace tc::ucp {

namespace {

// A message whose data is still to be fetched (rendezvous).
struct Arriving {
  AmReceiver& to;
  slot::Header header;
  AmBuffers::Buffer data;
};

void run(AmReceiver& to, const slot::Header& header, std::byte* payload) {
  Receiver::Use use;
  auto code = to.state->receiver.code_for(header, payload, use);
  if (!code) return to.state->report(code.error());
  auto ran = to.state->receiver.run(**code, payload, header.payload_size, to.target_args);
  if (!ran) to.state->report(ran.error());
}

void has_arrived(void* request, ucs_status_t status, size_t, void* user_data) {
  const std::unique_ptr<Arriving> arriving(static_cast<Arriving*>(user_data));
  (void)guarded([&] {
    if (status == UCS_OK)
      run(arriving->to, arriving->header, arriving->data.memory.get());
    else
      arriving->to.state->report({TC_ERR_IO, fmt::format("an Active Message of {} bytes did not arrive: {}",
                                                         arriving->header.length, ucs_status_string(status))});
    arriving->to.buffers.give_back(std::move(arriving->data));
    return UCS_OK;
  });
  ucp_request_free(request);
}

ucs_status_t fetch(AmReceiver& to, const slot::Header& header, void* descriptor, size_t size) {
  auto buffer = to.buffers.take(size);
  auto* const memory = buffer.memory.get();
  if (memory == nullptr) {
    to.state->report({TC_ERR_NO_MEMORY, fmt::format("no memory for an Active Message of {} bytes", size)});
    return UCS_OK;
  }
  auto arriving = std::make_unique<Arriving>(Arriving{to, header, std::move(buffer)});
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv_am = has_arrived;
  param.user_data = arriving.get();
  auto* const request = ucp_am_recv_data_nbx(to.worker, descriptor, memory, size, &param);
  if (UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
  (void)arriving.release();  // has_arrived() has it
  return UCS_INPROGRESS;
}

// The header as the message carries it, when it fits `size` bytes of data; a look that is not `frame` else.
slot::Look read_header(const void* bytes, size_t header_size, size_t size, slot::Header& header) noexcept {
  slot::HeaderBytes copy;
  if (header_size != copy.size()) return slot::Look::nothing;
  std::memcpy(copy.data(), bytes, copy.size());
  const auto look = slot::check_header(copy, slot::header_bytes + size, header);
  return look == slot::Look::frame && header.length != slot::header_bytes + size ? slot::Look::malformed : look;
}

ucs_status_t on_message(void* arg, const void* header_bytes, size_t header_size, void* data, size_t size,
                        const ucp_am_recv_param_t* param) {
  auto& to = *static_cast<AmReceiver*>(arg);
  const auto status = guarded([&]() -> ucs_status_t {
    slot::Header header;
    const auto look = read_header(header_bytes, header_size, size, header);
    if (look != slot::Look::frame) {
      to.state->report({TC_ERR_MALFORMED, fmt::format("in an Active Message with {} bytes of data: {}", size,
                                                      slot::describe(look, header, size + slot::header_bytes))});
      return UCS_OK;
    }
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return fetch(to, header, data, size);
    run(to, header, static_cast<std::byte*>(data));
    return UCS_OK;
  });
  return status == UCS_INPROGRESS ? status : UCS_OK;  // a message that failed is over all the same
}

}  // namespace

}  // namespace tc::ucp

extern "C" {

ucs_status_t ucp_ifunc_am_register(ucp_worker_h worker, ucp_context_h context, unsigned am_id, void* target_args) {
  return tc::ucp::guarded([&]() -> ucs_status_t {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = am_id;
    param.cb = tc::ucp::on_message;
    param.arg = tc::ucp::state_of(context).add_am_receiver(worker, target_args);
    const auto status = ucp_worker_set_am_recv_handler(worker, &param);
    if (status != UCS_OK)
      (void)tc::ucp::report(
          {TC_ERR_IO, fmt::format("Active Message {} cannot be handled: {}", am_id, ucs_status_string(status))});
    return status;
  });
}

ucs_status_ptr_t ucp_ifunc_am_send_nbx(ucp_ep_h ep, unsigned am_id, ucp_ifunc_msg_t msg,
                                       const ucp_request_param_t* param) {
  if (msg.frame == nullptr) [[unlikely]]
    return UCS_STATUS_PTR(tc::ucp::report_no_message());
  auto& message = tc::ucp::Message::of(msg);
  auto& given = message.ifunc().given;
  const bool with_code = message.ifunc().needs_code(ep);
  const auto& header = message.ordered_header(with_code);
  const auto body = message.body(with_code);
  auto bytes = param != nullptr ? *param : ucp_request_param_t{};
  bytes.op_attr_mask &= ~static_cast<uint32_t>(UCP_OP_ATTR_FIELD_DATATYPE);
  auto* const request = ucp_am_send_nbx(ep, am_id, header.data(), header.size(), body.data(), body.size(), &bytes);
  if (with_code && !UCS_PTR_IS_ERR(request)) given.add(ep);
  return request;
}

}  // extern "C"
