// SPDX-License-Identifier: Apache-2.0
#include <threechains/benchmark.h>

#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;
using tc::capi::message_of;

namespace {

// Sends a message that is not one frame, or for which there is no room yet. Out of line, so that tc_endpoint_send()
// stays small.
[[gnu::noinline]] tc_status_t send_slowly(tc_endpoint_t* endpoint, tc_message_t* message, bool with_code) {
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*endpoint->owner);
    if (!with_code && endpoint->link->sender().try_send(message_of(message))) return {};
    return endpoint->owner->node->send(*endpoint->link, message_of(message), with_code,
                                       tc::Deadline::after_ms(endpoint->timeout_ms));
  });
}

// Continues a burst of sends at `done`, and increases it. A burst stops at the end of a lap or batch, when there is no
// room, or when code must be sent along. Does not use `endpoint` after a wait, because the application may have closed
// it meanwhile.
[[gnu::noinline]] tc_status_t send_rest(tc_endpoint_t* endpoint, tc_message_t* const* messages, size_t count,
                                        size_t& done) {
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*endpoint->owner);
    auto& node = *endpoint->owner->node;
    auto& link = *endpoint->link;
    const tc::node::Link::Hold hold(link);
    const auto timeout_ms = endpoint->timeout_ms;
    while (done < count) {
      auto& message = message_of(messages[done]);
      if (!link.sender().try_send(message))
        TC_CHECK(node.send(link, message, false, tc::Deadline::after_ms(timeout_ms)));
      ++done;
      done += link.sender().try_send(reinterpret_cast<tc::source::Message* const*>(messages + done), count - done);
    }
    return {};
  });
}

}  // namespace

extern "C" {

tc_status_t tc_node_connect(tc_node_t* node, const char* address, uint32_t timeout_ms, tc_endpoint_t** endpoint) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(address);
  TC_NOT_NULL(endpoint);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    TC_ASSIGN(auto* link, node->node->connect(address, tc::Deadline::after_ms(timeout_ms)));
    auto made = std::make_unique<tc_endpoint>(node, link, &node->gate);
    made->peer = link->peer().name;
    *endpoint = made.get();
    node->endpoints.emplace(made.get(), std::move(made));
    return {};
  });
}

tc_status_t tc_endpoint_free(tc_endpoint_t* endpoint, uint32_t timeout_ms) {
  TC_NOT_NULL(endpoint);
  return guarded([&]() -> tc::Status {
    auto& owner = *endpoint->owner;
    const auto entry = enter(owner);
    auto& link = *endpoint->link;
    owner.endpoints.erase(endpoint);  // whatever the flush says
    return owner.node->close(link, tc::Deadline::after_ms(timeout_ms));
  });
}

tc_status_t tc_endpoint_status(tc_endpoint_t* endpoint) {
  TC_NOT_NULL(endpoint);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*endpoint->owner);
    if (endpoint->link->is_lost()) return tc::fail(endpoint->link->reason());
    return {};
  });
}

const char* tc_endpoint_transport(const tc_endpoint_t* endpoint) {
  return endpoint != nullptr ? endpoint->link->channel().connection().transport().data() : "";
}

const char* tc_endpoint_peer(const tc_endpoint_t* endpoint) {
  return endpoint != nullptr ? endpoint->peer.c_str() : "";
}

uint32_t tc_endpoint_peer_id(const tc_endpoint_t* endpoint) {
  if (endpoint == nullptr) return 0;
  const auto id = endpoint->link->peer().node_id;
  return id == tc::node::Identity::no_id ? 0 : id;
}

tc_status_t tc_endpoint_flush(tc_endpoint_t* endpoint, uint32_t timeout_ms) {
  TC_NOT_NULL(endpoint);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*endpoint->owner);
    TC_CHECK(endpoint->owner->node->can_wait_for("a peer"));
    return endpoint->link->flush(tc::Deadline::after_ms(timeout_ms));
  });
}

tc_status_t tc_endpoint_send(tc_endpoint_t* endpoint, tc_message_t* message) {
  TC_NOT_NULL(endpoint);
  TC_NOT_NULL(message);
  if (!endpoint->gate->is_shared() && endpoint->link->sender().try_send(message_of(message))) [[likely]]
    return TC_OK;
  return send_slowly(endpoint, message, false);
}

tc_status_t tc_endpoint_send_many(tc_endpoint_t* endpoint, tc_message_t* const* messages, size_t count, size_t* sent) {
  TC_NOT_NULL(endpoint);
  if (count != 0) TC_NOT_NULL(messages);
  size_t done = 0;
  if (!endpoint->gate->is_shared())
    done = endpoint->link->sender().try_send(reinterpret_cast<tc::source::Message* const*>(messages), count);
  const auto status = done == count ? TC_OK : send_rest(endpoint, messages, count, done);
  if (sent != nullptr) *sent = done;
  return status;
}

tc_status_t tc_endpoint_send_with_code(tc_endpoint_t* endpoint, tc_message_t* message) {
  TC_NOT_NULL(endpoint);
  TC_NOT_NULL(message);
  return send_slowly(endpoint, message, true);
}

void tc_endpoint_set_timeout(tc_endpoint_t* endpoint, uint32_t timeout_ms) {
  if (endpoint != nullptr) endpoint->timeout_ms = timeout_ms;
}

tc_status_t tc_endpoint_call(tc_endpoint_t* endpoint, tc_message_t* message, uint32_t deadline_ms,
                             tc_future_t** future) {
  TC_NOT_NULL(endpoint);
  TC_NOT_NULL(message);
  TC_NOT_NULL(future);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*endpoint->owner);
    auto made = std::make_unique<tc_future>(endpoint->owner);
    TC_ASSIGN(made->future, endpoint->owner->node->call(*endpoint->link, message_of(message), deadline_ms,
                                                        tc::Deadline::after_ms(endpoint->timeout_ms)));
    *future = made.release();
    return {};
  });
}

tc_status_t tc_endpoint_ask_statistics(tc_endpoint_t* endpoint, uint32_t deadline_ms, tc_future_t** future) {
  TC_NOT_NULL(endpoint);
  TC_NOT_NULL(future);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*endpoint->owner);
    auto made = std::make_unique<tc_future>(endpoint->owner);
    TC_ASSIGN(made->future, endpoint->owner->node->ask_statistics(*endpoint->link, deadline_ms));
    *future = made.release();
    return {};
  });
}

}  // extern "C"
