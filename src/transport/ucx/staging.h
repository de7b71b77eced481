// SPDX-License-Identifier: Apache-2.0
//
// Bytes that are being given to UCX. It may still read them after the call: then they stay until it is done, and the
// next message gets other memory. Most of the time UCX has copied them at once, and the same memory serves for ever.
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "base/bytes.h"

namespace tc::transport {

class Staging {
 public:
  // `on_the_way` counts messages that UCX still reads; it must outlive the UCX worker.
  explicit Staging(unsigned& on_the_way) noexcept : on_the_way_(on_the_way) {}

  // Memory for a message of this size. May throw std::bad_alloc.
  std::byte* begin(size_t bytes) {
    if (message_ == nullptr) message_ = std::make_unique<Message>();
    if (message_->bytes.size() < bytes) message_->bytes.resize(bytes);
    return message_->bytes.data();
  }
  // For each operation on that memory: has UCX call back when it is done.
  ucp_request_param_t parameters() const noexcept {
    ucp_request_param_t parameters;  // what its mask leaves out is not read
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &Staging::on_done;
    parameters.user_data = message_.get();
    return parameters;
  }
  // What the operation returned: UCS_OK, or UCX's error.
  ucs_status_t note(ucs_status_ptr_t request) noexcept {
    if (UCS_PTR_IS_PTR(request)) ++message_->operations;
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
  }
  // All operations on it were started.
  void end() noexcept {
    if (message_->operations == 1) return;
    message_->on_the_way = &on_the_way_;
    ++on_the_way_;
    --message_.release()->operations;
  }

 private:
  struct Message {
    unsigned operations = 1;         // of UCX; and ours, until end()
    unsigned* on_the_way = nullptr;  // after end()
    Bytes bytes;
  };

  static void on_done(void* request, ucs_status_t, void* user) noexcept {
    ucp_request_free(request);
    auto* const message = static_cast<Message*>(user);
    if (--message->operations != 0) return;
    --*message->on_the_way;
    delete message;
  }

  unsigned& on_the_way_;
  std::unique_ptr<Message> message_;
};

}  // namespace tc::transport
