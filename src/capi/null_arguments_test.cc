// SPDX-License-Identifier: Apache-2.0
//
// NULL where something must be given is told by the argument's name, and nothing happens; where NULL means nothing, nothing happens.
#include <gmock/gmock.h>
#include <threechains/benchmark.h>

#include <functional>

#include "capi/testing/node.h"

namespace tc::capi::test {
namespace {

using ::testing::HasSubstr;

struct Wrong {
  const char* argument;  // that the message names
  std::function<tc_status_t()> call;
};

class NullArguments : public ::testing::Test {
 protected:
  NullArguments() {
    EXPECT_EQ(tc_config_create(&config), TC_OK);
    EXPECT_EQ(tc_ifunc_register(node.handle, "echo", &ifunc), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_message_create(ifunc, "x", 1, &message), TC_OK);
    endpoint = node.connect(target);
    future = node.call(endpoint, "echo", "x");
  }
  ~NullArguments() override {
    tc_future_free(future);
    tc_message_free(message);
    tc_config_free(config);
  }
  static void expect_told(const std::vector<Wrong>& calls) {
    for (const auto& [argument, call] : calls) {
      EXPECT_EQ(call(), TC_ERR_INVALID) << argument;
      EXPECT_EQ(tc_error_message(), std::string(argument) + " must not be NULL");
    }
  }

  Node node;
  Served target;
  tc_config_t* config = nullptr;
  tc_ifunc_t* ifunc = nullptr;
  tc_message_t* message = nullptr;
  tc_endpoint_t* endpoint = nullptr;
  tc_future_t* future = nullptr;
  int number = 0;
  uint64_t value = 0;
};

TEST_F(NullArguments, of_configurations_and_nodes_are_named) {
  tc_node_t* made = nullptr;
  auto* const n = node.handle;
  expect_told({
      {"config", [] { return tc_config_create(nullptr); }},
      {"config", [] { return tc_config_set(nullptr, "log", "off"); }},
      {"key", [&] { return tc_config_set(config, nullptr, "off"); }},
      {"value", [&] { return tc_config_set(config, "log", nullptr); }},
      {"config", [] { return tc_config_read(nullptr, "file"); }},
      {"file", [&] { return tc_config_read(config, nullptr); }},
      {"config", [] { return tc_config_set_log_function(nullptr, nullptr, nullptr); }},
      {"node", [&] { return tc_node_create(config, nullptr); }},
      {"node", [&] { return tc_node_export(nullptr, "f", this); }},
      {"symbol", [&] { return tc_node_export(n, nullptr, this); }},
      {"node", [&] { return tc_node_expose(nullptr, "f", this, 1); }},
      {"name", [&] { return tc_node_expose(n, nullptr, this, 1); }},
      {"node", [] { return tc_node_poll(nullptr, nullptr); }},
      {"node", [] { return tc_node_wait(nullptr, 1, nullptr); }},
      {"node", [] { return tc_node_reload_keys(nullptr); }},
      {"node", [] { return tc_node_start_progress(nullptr); }},
      {"node", [] { return tc_node_start_shared_progress(nullptr); }},
      {"node", [] { return tc_node_stop_progress(nullptr); }},
      {"node", [&] { return tc_node_fd(nullptr, &number); }},
      {"fd", [&] { return tc_node_fd(n, nullptr); }},
      {"node", [&] { return tc_node_arm(nullptr, &number); }},
      {"node", [&] { return tc_node_stat(nullptr, "executed", &value); }},
      {"name", [&] { return tc_node_stat(n, nullptr, &value); }},
      {"value", [&] { return tc_node_stat(n, "executed", nullptr); }},
  });
  EXPECT_EQ(made, nullptr);
}

TEST_F(NullArguments, of_endpoints_messages_and_futures_are_named) {
  auto* const n = node.handle;
  tc_endpoint_t* another = nullptr;
  tc_ifunc_t* registered = nullptr;
  tc_message_t* made = nullptr;
  tc_future_t* answer = nullptr;
  expect_told({
      {"node", [&] { return tc_node_connect(nullptr, "127.0.0.1:1", 10, &another); }},
      {"address", [&] { return tc_node_connect(n, nullptr, 10, &another); }},
      {"endpoint", [&] { return tc_node_connect(n, "127.0.0.1:1", 10, nullptr); }},
      {"endpoint", [] { return tc_endpoint_status(nullptr); }},
      {"endpoint", [&] { return tc_endpoint_send(nullptr, message); }},
      {"message", [&] { return tc_endpoint_send(endpoint, nullptr); }},
      {"endpoint", [&] { return tc_endpoint_send_with_code(nullptr, message); }},
      {"message", [&] { return tc_endpoint_send_with_code(endpoint, nullptr); }},
      {"endpoint", [&] { return tc_endpoint_send_many(nullptr, &message, 1, nullptr); }},
      {"messages", [&] { return tc_endpoint_send_many(endpoint, nullptr, 1, nullptr); }},
      {"endpoint", [&] { return tc_endpoint_call(nullptr, message, 10, &answer); }},
      {"message", [&] { return tc_endpoint_call(endpoint, nullptr, 10, &answer); }},
      {"future", [&] { return tc_endpoint_call(endpoint, message, 10, nullptr); }},
      {"endpoint", [] { return tc_endpoint_flush(nullptr, 10); }},
      {"future", [] { return tc_future_wait(nullptr, 10); }},
      {"future", [] { return tc_future_on_ready(nullptr, [](tc_future_t*, void*) {}, nullptr); }},
      {"node", [&] { return tc_ifunc_register(nullptr, "echo", &registered); }},
      {"name", [&] { return tc_ifunc_register(n, nullptr, &registered); }},
      {"ifunc", [&] { return tc_ifunc_register(n, "echo", nullptr); }},
      {"node", [&] { return tc_ifunc_register_memory(nullptr, "x", 1, &registered); }},
      {"bundle", [&] { return tc_ifunc_register_memory(n, nullptr, 1, &registered); }},
      {"ifunc", [&] { return tc_ifunc_register_memory(n, "x", 1, nullptr); }},
      {"ifunc", [&] { return tc_message_create(nullptr, "x", 1, &made); }},
      {"message", [&] { return tc_message_create(ifunc, "x", 1, nullptr); }},
  });
  for (const void* const handle : {static_cast<void*>(another), static_cast<void*>(registered),
                                   static_cast<void*>(made), static_cast<void*>(answer)})
    EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(tc_endpoint_send_many(endpoint, nullptr, 0, nullptr), TC_OK) << "none of them are needed";
}

TEST_F(NullArguments, are_nothing_to_what_frees_and_what_asks) {
  tc_config_free(nullptr);
  tc_node_free(nullptr);
  tc_node_wake(nullptr);
  tc_node_set_target_args(nullptr, this);
  tc_endpoint_set_timeout(nullptr, 5);
  tc_ifunc_free(nullptr);
  tc_message_free(nullptr);
  tc_future_free(nullptr);
  for (const char* const text : {tc_node_address(nullptr), tc_node_peer_address(nullptr, 0), tc_endpoint_peer(nullptr),
                                 tc_endpoint_transport(nullptr), tc_ifunc_name(nullptr), tc_ifunc_content_id(nullptr)})
    EXPECT_STREQ(text, "");
  EXPECT_EQ(tc_node_id(nullptr), 0u);
  EXPECT_EQ(tc_message_payload(nullptr, nullptr), nullptr);
  EXPECT_EQ(tc_future_bytes(nullptr, nullptr), nullptr);
}

}  // namespace
}  // namespace tc::capi::test
