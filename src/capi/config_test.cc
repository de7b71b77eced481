// SPDX-License-Identifier: Apache-2.0
//
// What a program may configure and ask, NULL as an argument, and calls out of an ifunc that runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <threechains/benchmark.h>
#include <threechains/threechains.h>

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;
using ::testing::HasSubstr;

class ConfigApi : public testing::Test {
 protected:
  ConfigApi() { EXPECT_EQ(tc_config_create(&config), TC_OK); }
  ~ConfigApi() override { tc_config_free(config); }
  tc_config_t* config = nullptr;
};

TEST_F(ConfigApi, each_option_is_listed_once_with_what_it_is_for) {
  std::set<std::string> names;
  for (size_t i = 0; i < tc_option_count(); ++i) {
    const auto* const option = tc_option_at(i);
    ASSERT_NE(option, nullptr);
    const std::string name = tc_option_name(option);
    EXPECT_TRUE(names.insert(name).second) << name;
    for (const std::string_view text : {tc_option_value(option), tc_option_help(option), tc_option_group(option)})
      EXPECT_NE(text, "") << name;
    EXPECT_TRUE(std::string_view(tc_option_help(option)).ends_with('.')) << name;
  }
  EXPECT_TRUE(names.contains("listen"));
  EXPECT_EQ(tc_option_at(tc_option_count()), nullptr);
  EXPECT_STREQ(tc_option_name(nullptr), "");
}

// Not in words: those say where it comes from.
TEST_F(ConfigApi, the_default_of_each_option_is_a_value_that_it_takes) {
  for (size_t i = 0; i < tc_option_count(); ++i) {
    const auto* const option = tc_option_at(i);
    const std::string_view preset = tc_option_default(option);
    if (preset.empty() || preset.contains(' ') || preset.starts_with('$')) continue;
    EXPECT_EQ(tc_config_set(config, tc_option_name(option), preset.data()), TC_OK) << tc_error_message();
  }
}

TEST_F(ConfigApi, a_value_that_makes_no_sense_is_refused_with_what_would) {
  for (const auto& [key, value, words] :
       {std::tuple{"hops", "many", "hops is 'many' when it is a whole number from 0 to 65535"},
        {"tune", "yes", "tune is 'yes' when it is on or off"},
        {"transport", "pigeon", "transport is 'pigeon' when it is auto, shm, unix, tcp, ucx or ucx-put"},
        {"bootstrap", "luck", "bootstrap is 'luck' when it is none, auto, pmix or dir:PATH"},
        {"ring-bytes", "5000", "ring-bytes is 5000 when it is a power of two"},
        {"code-budget", "64T", "code-budget is '64T' when it is a number of bytes from"},
        {"code-budget", "99999999999999999999G", "code-budget is "},
        {"code-budget", "18014398509481984K", "code-budget is "},
        {"code-budget", "K", "code-budget is 'K' when"},
        {"colour", "red", "there is no option 'colour'; there are: name, listen"}}) {
    EXPECT_EQ(tc_config_set(config, key, value), TC_ERR_INVALID) << key;
    EXPECT_THAT(tc_error_message(), HasSubstr(words));
  }
}

TEST_F(ConfigApi, the_largest_value_is_taken_and_one_more_is_refused) {
  for (const auto& [key, largest, larger] : {std::tuple{"id", "16777216", "16777217"}, {"hops", "65535", "65536"}}) {
    EXPECT_EQ(tc_config_set(config, key, largest), TC_OK) << key << ": " << tc_error_message();
    EXPECT_EQ(tc_config_set(config, key, larger), TC_ERR_INVALID) << key;
  }
}

TEST_F(ConfigApi, bytes_may_end_in_k_m_and_g) {
  for (const auto* value : {"65536", "64K", "64M", "1G"})
    EXPECT_EQ(tc_config_set(config, "code-budget", value), TC_OK) << tc_error_message();
}

TEST_F(ConfigApi, a_file_sets_options_and_an_error_names_every_line) {
  const auto directory = std::move(TemporaryDirectory::create().value());
  const auto file = directory.file("node.toml");
  ASSERT_TRUE(write_file_atomically(file, as_bytes("# a node\nid = 7\nlisten = \"none\"\n")));
  ASSERT_EQ(tc_config_read(config, file.c_str()), TC_OK) << tc_error_message();
  tc_node_t* node = nullptr;
  ASSERT_EQ(tc_node_create(config, &node), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_node_id(node), 7u);
  EXPECT_STREQ(tc_node_address(node), "");
  tc_node_free(node);

  ASSERT_TRUE(write_file_atomically(file, as_bytes("id = 8\nhops = 70000\nlog = \"loud\"\n")));
  EXPECT_EQ(tc_config_read(config, file.c_str()), TC_ERR_INVALID);
  EXPECT_THAT(tc_error_message(), HasSubstr("line 2: hops is '70000' when it is a whole number from 0 to 65535\n"));
  EXPECT_THAT(tc_error_message(), HasSubstr("line 3: log is 'loud' when it is off, error"));
  ASSERT_EQ(tc_node_create(config, &node), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_node_id(node), 7u) << "a file with a fault sets nothing";
  tc_node_free(node);
  EXPECT_EQ(tc_config_read(config, directory.file("nowhere").c_str()), TC_ERR_NOT_FOUND);
}

TEST(Statistics, each_number_that_is_listed_can_be_asked_for) {
  Node node;
  std::set<std::string> names;
  for (size_t i = 0; i < tc_statistic_count(); ++i) {
    const auto* const statistic = tc_statistic_at(i);
    uint64_t value = 0;
    EXPECT_EQ(tc_node_stat(node.handle, tc_statistic_name(statistic), &value), TC_OK);
    EXPECT_TRUE(names.insert(tc_statistic_name(statistic)).second);
    EXPECT_STRNE(tc_statistic_unit(statistic), "");
    EXPECT_TRUE(std::string_view(tc_statistic_help(statistic)).ends_with('.'));
  }
  EXPECT_EQ(tc_statistic_at(tc_statistic_count()), nullptr);
  uint64_t value = 0;
  EXPECT_EQ(tc_node_stat(node.handle, "luck", &value), TC_ERR_NOT_FOUND);
  EXPECT_THAT(tc_error_message(), HasSubstr("there are: executed, "));
}

TEST(Statistics, a_report_says_how_much_room_it_needs_and_is_copied_where_there_is_enough) {
  Node node;
  size_t size = 0;
  ASSERT_EQ(tc_node_report(node.handle, nullptr, 0, &size), TC_ERR_LIMIT);
  EXPECT_EQ(tc_error_message(), fmt::format("the report has {} bytes when 0 are given", size));
  ASSERT_GT(size, 100u);
  std::string text(size + 4000, '#');  // numbers of it may grow meanwhile
  ASSERT_EQ(tc_node_report(node.handle, text.data(), text.size(), &size), TC_OK) << tc_error_message();
  EXPECT_EQ(text.find('#'), size);
  EXPECT_TRUE(text.substr(0, size).ends_with('\n'));
  EXPECT_THAT(text, HasSubstr("executed"));
}

TEST(Statistics, a_number_says_whether_it_only_grows) {
  const std::set<std::string> now = {"codes",   "code-bytes",         "retired",       "links",
                                     "load-ns", "first-execution-ns", "waiting-calls", "waiting-bytes"};
  for (size_t i = 0; i < tc_statistic_count(); ++i) {
    const auto* const statistic = tc_statistic_at(i);
    EXPECT_EQ(tc_statistic_is_total(statistic), now.contains(tc_statistic_name(statistic)) ? 0 : 1)
        << tc_statistic_name(statistic);
  }
  EXPECT_EQ(tc_statistic_is_total(nullptr), 0);
}

TEST(Statistics, the_numbers_are_those_of_their_names) {
  Served target;
  Node source;
  auto* const endpoint = source.connect(target);
  for (const auto* name : {"echo", "echo", "refuse"}) {
    auto* const future = source.call(endpoint, name, "x");
    EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
    tc_future_free(future);
  }
  const auto stat = [](const Node& node, const char* name) {
    uint64_t value = 0;
    EXPECT_EQ(tc_node_stat(node.handle, name, &value), TC_OK);
    return value;
  };
  EXPECT_EQ(stat(target, "executed"), 3u);
  EXPECT_EQ(stat(target, "codes"), 2u);
  EXPECT_EQ(stat(target, "code-loads"), 2u);
  EXPECT_EQ(stat(target, "links"), 1u);
  EXPECT_GT(stat(target, "code-bytes"), 0u);
  EXPECT_GE(stat(target, "first-execution-ns"), stat(target, "load-ns"));
  EXPECT_GT(stat(target, "load-ns"), 0u);
  EXPECT_EQ(stat(source, "executed"), 0u);
  EXPECT_GT(stat(source, "code-bytes-sent"), 0u);
  EXPECT_EQ(stat(target, "code-bytes-sent"), 0u);
}

TEST(PeerAddress, of_a_node_outside_of_a_cluster_is_there_for_its_own_number_alone) {
  const Node node;
  const auto number = tc_node_id(node.handle);
  EXPECT_STREQ(tc_node_peer_address(node.handle, number), tc_node_address(node.handle));
  EXPECT_STRNE(tc_node_address(node.handle), "");
  EXPECT_STREQ(tc_node_peer_address(node.handle, number + 1), "");
}

TEST(LogFunction, gets_the_lines_of_the_node_instead_of_standard_error) {
  struct Lines {
    std::mutex mutex;
    std::vector<std::pair<int, std::string>> all;
    static void take(void* context, int level, const char* line) {
      auto& lines = *static_cast<Lines*>(context);
      const std::lock_guard lock(lines.mutex);
      lines.all.emplace_back(level, line);
    }
  } lines;
  testing::internal::CaptureStderr();
  {
    Node target({{"transport", "tcp"}, {"name", "teller"}}, Lines::take, &lines);
    EXPECT_EQ(tc_node_start_progress(target.handle), TC_OK);
    const Node source;
    auto* const endpoint = source.connect(target);
    EXPECT_EQ(tc_endpoint_free(endpoint, 1000), TC_OK);
    auto* const failing = source.call(source.connect(target), "refuse", "no\nnode is fine");
    EXPECT_EQ(tc_future_wait(failing, 10'000), TC_OK);
    tc_future_free(failing);
    EXPECT_EQ(tc_node_stop_progress(target.handle), TC_OK);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const std::lock_guard lock(lines.mutex);
  ASSERT_FALSE(lines.all.empty());
  for (const auto& [level, line] : lines.all) {
    EXPECT_GE(level, 0);
    EXPECT_LE(level, 3);
    EXPECT_FALSE(line.ends_with('\n'));
  }
}

}  // namespace
}  // namespace tc::capi

namespace tc::capi::test {
namespace {

using ::testing::HasSubstr;

// ---- NULL as an argument
//
// A function refuses NULL for a required argument, and its error names the argument. A function whose argument may be
// NULL does nothing then.

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
  char name[8] = {};
  size_t size = 0;
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
      {"node", [] { return tc_node_drain(nullptr); }},
      {"node", [] { return tc_node_set_log_level(nullptr, "info"); }},
      {"node", [] { return tc_node_start_progress(nullptr); }},
      {"node", [] { return tc_node_start_shared_progress(nullptr); }},
      {"node", [] { return tc_node_stop_progress(nullptr); }},
      {"node", [&] { return tc_node_fd(nullptr, &number); }},
      {"fd", [&] { return tc_node_fd(n, nullptr); }},
      {"node", [&] { return tc_node_arm(nullptr, &number); }},
      {"node", [&] { return tc_node_stat(nullptr, "executed", &value); }},
      {"name", [&] { return tc_node_stat(n, nullptr, &value); }},
      {"value", [&] { return tc_node_stat(n, "executed", nullptr); }},
      {"node", [&] { return tc_node_expose_file(nullptr, "f", this, 1, 0); }},
      {"name", [&] { return tc_node_expose_file(n, nullptr, this, 1, 0); }},
      {"data", [&] { return tc_node_expose_file(n, "f", nullptr, 1, 0); }},
      {"level", [&] { return tc_node_set_log_level(n, nullptr); }},
      {"node", [&] { return tc_node_running_ifunc(nullptr, name, sizeof name); }},
      {"name", [&] { return tc_node_running_ifunc(n, nullptr, 1); }},
      {"node", [&] { return tc_node_report(nullptr, name, sizeof name, &size); }},
      {"text", [&] { return tc_node_report(n, nullptr, 1, &size); }},
      {"size", [&] { return tc_node_report(n, name, sizeof name, nullptr); }},
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
      {"future", [] { return tc_future_status(nullptr); }},
      {"future", [] { return tc_future_on_ready(nullptr, [](tc_future_t*, void*) {}, nullptr); }},
      {"node", [&] { return tc_ifunc_register(nullptr, "echo", &registered); }},
      {"name", [&] { return tc_ifunc_register(n, nullptr, &registered); }},
      {"ifunc", [&] { return tc_ifunc_register(n, "echo", nullptr); }},
      {"node", [&] { return tc_ifunc_register_memory(nullptr, "x", 1, &registered); }},
      {"bundle", [&] { return tc_ifunc_register_memory(n, nullptr, 1, &registered); }},
      {"ifunc", [&] { return tc_ifunc_register_memory(n, "x", 1, nullptr); }},
      {"ifunc", [&] { return tc_message_create(nullptr, "x", 1, &made); }},
      {"message", [&] { return tc_message_create(ifunc, "x", 1, nullptr); }},
      {"ifunc", [&] { return tc_message_create_in_place(nullptr, "x", 1, &made); }},
      {"message", [&] { return tc_message_create_in_place(ifunc, "x", 1, nullptr); }},
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

namespace tc::capi {
namespace {

using test::Node;
using ::testing::HasSubstr;

// ---- Calls out of an ifunc that runs
//
// An ifunc may call functions of the application, and these must not wait inside the library. The waiting thread would
// be the one that has to bring the answer. Work that can be done later is done later.

// Three nodes: `caller` runs an ifunc at `target`, which has a call out to `mute`, whom nobody drives.
class InsideAnIfunc : public testing::Test {
 protected:
  InsideAnIfunc() {
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    to_mute = target.connect(mute);
    EXPECT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
    unanswered = target.call(to_mute, "echo");
    current = this;
  }
  ~InsideAnIfunc() override { tc_future_free(unanswered); }

  // What `does` says when the ifunc calls it, and with which words.
  tc_status_t said_inside(std::function<tc_status_t()> does) {
    does_inside = std::move(does);
    EXPECT_EQ(tc_node_export(target.handle, "application_answer", reinterpret_cast<void*>(&answer)), TC_OK);
    EXPECT_EQ(tc_node_start_progress(target.handle), TC_OK);
    tc_future_t* const future = caller.call(caller.connect(target), "exported");
    EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_future_status(future), TC_OK) << tc_error_message();
    tc_future_free(future);
    EXPECT_EQ(tc_node_stop_progress(target.handle), TC_OK);
    return said;
  }
  static uint64_t answer() {
    current->said = current->does_inside();
    current->words = tc_error_message();
    return 0;
  }

  static inline InsideAnIfunc* current = nullptr;
  Node target, mute, caller;
  tc_endpoint_t* to_mute = nullptr;
  tc_future_t* unanswered = nullptr;
  std::function<tc_status_t()> does_inside;
  tc_status_t said = TC_OK;
  std::string words;
};

TEST_F(InsideAnIfunc, nobody_may_wait_for_an_answer) {
  EXPECT_EQ(said_inside([this] { return tc_future_wait(unanswered, 300); }), TC_ERR_INVALID);
  EXPECT_THAT(words, HasSubstr("an ifunc that runs cannot wait for an answer"));
}

TEST_F(InsideAnIfunc, nobody_may_connect) {
  tc_endpoint_t* endpoint = nullptr;
  EXPECT_EQ(said_inside([&] { return tc_node_connect(target.handle, tc_node_address(caller.handle), 300, &endpoint); }),
            TC_ERR_INVALID);
  EXPECT_THAT(words, HasSubstr("an ifunc that runs cannot wait for a connection"));
}

TEST_F(InsideAnIfunc, an_endpoint_is_closed_without_a_wait) {
  EXPECT_EQ(said_inside([this] { return tc_endpoint_free(to_mute, 0); }), TC_OK);
  EXPECT_EQ(tc_future_wait(unanswered, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(unanswered), TC_ERR_CLOSED);
}

TEST_F(InsideAnIfunc, nobody_may_end_the_progress_thread_that_runs_it) {
  EXPECT_EQ(said_inside([this] { return tc_node_stop_progress(target.handle); }), TC_ERR_INVALID);
  EXPECT_THAT(words, HasSubstr("an ifunc that runs cannot wait for the end of the progress thread"));
}

}  // namespace
}  // namespace tc::capi
