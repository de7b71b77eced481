// SPDX-License-Identifier: Apache-2.0
//
// Nodes for tests of the C API, which are driven as a program would.
//
// Thread: the test's.
#pragma once

#include <gtest/gtest.h>
#include <threechains/threechains.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tc::capi::test {

using Options = std::vector<std::pair<const char*, const char*>>;

struct Node {
  explicit Node(const Options& more = {{"transport", "tcp"}}, tc_log_function_t log = nullptr,
                void* context = nullptr) {
    tc_config_t* config = nullptr;
    EXPECT_EQ(tc_config_create(&config), TC_OK);
    EXPECT_EQ(tc_config_set(config, "log", log != nullptr ? "debug" : "off"), TC_OK);
    EXPECT_EQ(tc_config_set(config, "path", TC_TEST_IFUNCS), TC_OK);
    EXPECT_EQ(tc_config_set_log_function(config, log, context), TC_OK);
    for (const auto& [key, value] : more) EXPECT_EQ(tc_config_set(config, key, value), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_node_create(config, &handle), TC_OK) << tc_error_message();
    tc_config_free(config);
  }
  ~Node() { tc_node_free(handle); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // To a node that somebody drives.
  tc_endpoint_t* connect(const Node& to) const {
    tc_endpoint_t* endpoint = nullptr;
    EXPECT_EQ(tc_node_connect(handle, tc_node_address(to.handle), 5000, &endpoint), TC_OK) << tc_error_message();
    return endpoint;
  }
  tc_future_t* call(tc_endpoint_t* endpoint, const char* name, const std::string& payload = "",
                    uint32_t deadline_ms = 10'000) const {
    tc_ifunc_t* ifunc = nullptr;
    tc_message_t* message = nullptr;
    tc_future_t* future = nullptr;
    EXPECT_EQ(tc_ifunc_register(handle, name, &ifunc), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_message_create(ifunc, payload.data(), payload.size(), &message), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_endpoint_call(endpoint, message, deadline_ms, &future), TC_OK) << tc_error_message();
    tc_message_free(message);
    return future;
  }

  tc_node_t* handle = nullptr;
};

// A node that a thread of its own drives.
struct Served : Node {
  explicit Served(const Options& more = {{"transport", "tcp"}}) : Node(more) {
    EXPECT_EQ(tc_node_start_progress(handle), TC_OK);
  }
};

// Of a node with links of this kind. TCP is plain only on networks that are trusted.
inline Options options_for(std::string_view transport) {
  const bool is_ucx = transport.starts_with("ucx");
  Options options{{"transport", transport == "tls" ? "tcp" : transport.data()}};
  if (transport == "tcp" || is_ucx) options.emplace_back("trust-network", "127.0.0.0/8");
  if (is_ucx) {
    options.emplace_back("ucx-tls", "tcp,self");
    options.emplace_back("ucx-devices", "lo");
  }
  return options;
}

inline uint64_t number_of(const Node& node, const char* name) {
  uint64_t value = 0;
  EXPECT_EQ(tc_node_stat(node.handle, name, &value), TC_OK) << tc_error_message();
  return value;
}

}  // namespace tc::capi::test
