// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;

extern "C" {

tc_status_t tc_message_create(tc_ifunc_t* ifunc, const void* source_args, size_t source_args_size,
                              tc_message_t** message) {
  TC_NOT_NULL(ifunc);
  TC_NOT_NULL(message);
  return guarded([&]() -> tc::Status {
    const auto pass = enter(*ifunc->owner);
    TC_ASSIGN(auto made, tc::source::Message::create(ifunc->ifunc, source_args, source_args_size,
                                                     ifunc->owner->node->config().max_message));
    *message = reinterpret_cast<tc_message_t*>(made.release());
    return {};
  });
}

void* tc_message_payload(tc_message_t* message, size_t* size) {
  if (message == nullptr) return nullptr;
  if (size != nullptr) *size = tc::capi::message_of(message).size();
  return tc::capi::message_of(message).payload();
}

void tc_message_free(tc_message_t* message) {
  if (message != nullptr) delete &tc::capi::message_of(message);
}

}  // extern "C"
