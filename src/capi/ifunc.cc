// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;

namespace {

// The one handle for this content, even if it is registered several times.
tc_ifunc_t* handle_for(tc_node_t& node, std::shared_ptr<tc::source::Ifunc> ifunc) {
  auto& handle = node.ifuncs[ifunc.get()];
  if (handle == nullptr) {
    handle = std::make_unique<tc_ifunc>(&node, ifunc, ifunc->bundle.id().hex());
  }
  ++handle->registrations;
  return handle.get();
}

tc_status_t create(decltype(&tc::source::Message::create) create_message, tc_ifunc_t* ifunc, const void* source_args,
                   size_t source_args_size, tc_message_t** message) {
  TC_NOT_NULL(ifunc);
  TC_NOT_NULL(message);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*ifunc->owner);
    TC_ASSIGN(auto made,
              create_message(ifunc->ifunc, source_args, source_args_size, ifunc->owner->node->config().max_message));
    *message = reinterpret_cast<tc_message_t*>(made.release());
    return {};
  });
}

}  // namespace

extern "C" {

tc_status_t tc_ifunc_register(tc_node_t* node, const char* name, tc_ifunc_t** ifunc) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(name);
  TC_NOT_NULL(ifunc);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    TC_ASSIGN(auto registered, node->node->register_file(name));
    *ifunc = handle_for(*node, std::move(registered));
    return {};
  });
}

tc_status_t tc_ifunc_register_memory(tc_node_t* node, const void* bundle, size_t size, tc_ifunc_t** ifunc) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(bundle);
  TC_NOT_NULL(ifunc);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    TC_ASSIGN(auto read, tc::Bundle::read({static_cast<const std::byte*>(bundle), size}));
    TC_ASSIGN(auto registered, node->node->register_bundle(std::move(read)));
    *ifunc = handle_for(*node, std::move(registered));
    return {};
  });
}

void tc_ifunc_free(tc_ifunc_t* ifunc) {
  if (ifunc == nullptr) return;
  auto& owner = *ifunc->owner;
  const auto entry = enter(owner);
  owner.node->registry().remove(ifunc->ifunc);
  if (--ifunc->registrations == 0) owner.ifuncs.erase(ifunc->ifunc.get());
}

const char* tc_ifunc_name(const tc_ifunc_t* ifunc) { return ifunc != nullptr ? ifunc->ifunc->name().c_str() : ""; }

const char* tc_ifunc_content_id(const tc_ifunc_t* ifunc) { return ifunc != nullptr ? ifunc->content_id.c_str() : ""; }

tc_status_t tc_message_create(tc_ifunc_t* ifunc, const void* source_args, size_t source_args_size,
                              tc_message_t** message) {
  return create(&tc::source::Message::create, ifunc, source_args, source_args_size, message);
}

tc_status_t tc_message_create_in_place(tc_ifunc_t* ifunc, const void* source_args, size_t source_args_size,
                                       tc_message_t** message) {
  return create(&tc::source::Message::create_in_place, ifunc, source_args, source_args_size, message);
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
