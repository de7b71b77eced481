// SPDX-License-Identifier: Apache-2.0
//
// The memory of a message that is given to UCX. UCX may still read it after the call returns. Then the memory is kept
// until UCX reports that it is done, and the next message gets other memory. Mostly UCX copies the bytes at once, and
// the same memory is used again.
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "base/bytes.h"

namespace tc::transport {

class Staging {
 public:
  // `in_flight` counts messages that UCX still reads; it must outlive the UCX worker.
  explicit Staging(unsigned& in_flight) noexcept : in_flight_(in_flight) {}

  // Memory for a message of this size. May throw std::bad_alloc.
  std::byte* begin(size_t bytes) {
    if (message_ == nullptr) message_ = std::make_unique<Message>();
    if (message_->bytes.size() < bytes) message_->bytes.resize(bytes);
    return message_->bytes.data();
  }
  // The parameters of each operation on that memory: UCX calls on_done() in the end.
  ucp_request_param_t parameters() const noexcept {
    ucp_request_param_t parameters;  // what its mask leaves out is not read
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &Staging::on_done;
    parameters.user_data = message_.get();
    return parameters;
  }
  // Call with the result of the operation. Returns UCS_OK, or UCX's error.
  ucs_status_t track(ucs_status_ptr_t request) noexcept {
    if (UCS_PTR_IS_PTR(request)) ++message_->operations;
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
  }
  // Call when all operations of this message were started.
  void end() noexcept {
    if (message_->operations == 1) return;
    message_->in_flight = &in_flight_;
    ++in_flight_;
    --message_.release()->operations;
  }

 private:
  struct Message {
    unsigned operations = 1;        // of UCX, plus one until end()
    unsigned* in_flight = nullptr;  // after end()
    Bytes bytes;
  };

  static void on_done(void* request, ucs_status_t, void* user) noexcept {
    ucp_request_free(request);
    auto* const message = static_cast<Message*>(user);
    if (--message->operations != 0) return;
    --*message->in_flight;
    delete message;
  }

  unsigned& in_flight_;
  std::unique_ptr<Message> message_;
};

}  // namespace tc::transport
