// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;
using tc::capi::guarded_plain;

namespace {

tc::Result<std::unique_ptr<tc::transport::Transport>> make_transport(const tc::node::Config& config,
                                                                     tc::transport::Events& events) {
  return tc::transport::Network::create(config.network, events);
}

// Adds to `*executed`, when it is wanted, what `node` runs during the life of this object.
class Count {
 public:
  Count(tc_node& node, size_t* executed) noexcept
      : node_(node), executed_(executed), before_(executed != nullptr ? node.node->executor().executed() : 0) {}
  ~Count() {
    if (executed_ != nullptr) *executed_ = static_cast<size_t>(node_.node->executor().executed() - before_);
  }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  tc_node& node_;
  size_t* executed_;
  uint64_t before_;
};

}  // namespace

extern "C" {

tc_status_t tc_node_create(const tc_config_t* config, tc_node_t** node) {
  TC_NOT_NULL(node);
  return guarded([&]() -> tc::Status {
    auto wanted = config != nullptr ? config->config : tc::node::Config::defaults();
    TC_ASSIGN(auto made, tc::node::Node::create(std::move(wanted), make_transport));
    *node = std::make_unique<tc_node>(std::move(made)).release();
    return {};
  });
}

void tc_node_destroy(tc_node_t* node) {
  if (node == nullptr) return;
  node->progress.stop();
  delete node;
}

const char* tc_node_address(const tc_node_t* node) { return node != nullptr ? node->node->address().c_str() : ""; }

uint32_t tc_node_id(const tc_node_t* node) { return node != nullptr ? node->node->node_id() : 0; }
uint32_t tc_node_count(const tc_node_t* node) { return node != nullptr ? node->node->node_count() : 0; }

const char* tc_node_peer_address(const tc_node_t* node, uint32_t number) {
  if (node == nullptr) return "";
  const auto& known = node->node->address_of(number);
  return known.empty() && number == node->node->node_id() ? node->node->address().c_str() : known.c_str();
}

tc_status_t tc_node_export(tc_node_t* node, const char* symbol, void* address) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(symbol);
  TC_NOT_NULL(address);
  return guarded([&]() -> tc::Status {
    const auto pass = enter(*node);
    node->node->policy().export_symbol(symbol, address);
    return {};
  });
}

tc_status_t tc_node_expose(tc_node_t* node, const char* name, void* data, size_t size) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(name);
  return guarded([&]() -> tc::Status {
    const auto pass = enter(*node);
    node->node->expose(name, data, size);
    return {};
  });
}

void tc_node_set_target_args(tc_node_t* node, void* target_args) {
  if (node == nullptr) return;
  const auto pass = enter(*node);
  node->node->executor().target_args = target_args;
}

tc_status_t tc_node_poll(tc_node_t* node, size_t* executed) {
  TC_NOT_NULL(node);
  if (executed == nullptr && !node->gate.is_shared()) [[likely]]
    return guarded_plain([&] { node->node->poll(); });
  return guarded([&]() -> tc::Status {
    const auto pass = enter(*node);
    const Count count(*node, executed);
    node->node->poll();
    return {};
  });
}

tc_status_t tc_node_wait(tc_node_t* node, uint32_t timeout_ms, size_t* executed) {
  TC_NOT_NULL(node);
  return guarded([&]() -> tc::Status {
    const auto pass = enter(*node);
    const Count count(*node, executed);
    node->node->wait_ms(timeout_ms);
    node->node->expire();
    return {};
  });
}

void tc_node_wake(tc_node_t* node) {
  if (node != nullptr) node->node->wake();
}

tc_status_t tc_node_start_progress(tc_node_t* node) {
  TC_NOT_NULL(node);
  return guarded([&] { return node->progress.start(); });
}

tc_status_t tc_node_stop_progress(tc_node_t* node) {
  TC_NOT_NULL(node);
  return guarded([&]() -> tc::Status {
    node->progress.stop();
    return {};
  });
}

tc_status_t tc_node_stat(tc_node_t* node, const char* name, uint64_t* value) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(name);
  TC_NOT_NULL(value);
  return guarded([&]() -> tc::Status {
    const auto pass = enter(*node);
    TC_ASSIGN(*value, node->node->stat(name));
    return {};
  });
}

}  // extern "C"
