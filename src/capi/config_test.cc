// SPDX-License-Identifier: Apache-2.0
//
// Options, statistics and the log, as programs find them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/file.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;
using testing::HasSubstr;

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

TEST_F(ConfigApi, bytes_may_end_in_k_m_and_g) {
  for (const auto* value : {"65536", "64K", "64M", "1G"})
    EXPECT_EQ(tc_config_set(config, "code-budget", value), TC_OK) << tc_error_message();
}

TEST_F(ConfigApi, a_file_sets_options_and_an_error_names_its_line) {
  const auto directory = std::move(TemporaryDirectory::create().value());
  const auto file = directory.file("node.conf");
  ASSERT_TRUE(write_file_atomically(file, as_bytes("# a node\nid = 7\nlisten = none\n")));
  ASSERT_EQ(tc_config_read(config, file.c_str()), TC_OK) << tc_error_message();
  tc_node_t* node = nullptr;
  ASSERT_EQ(tc_node_create(config, &node), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_node_id(node), 7u);
  EXPECT_STREQ(tc_node_address(node), "");
  tc_node_free(node);

  ASSERT_TRUE(write_file_atomically(file, as_bytes("id = 7\nhops = many\n")));
  EXPECT_EQ(tc_config_read(config, file.c_str()), TC_ERR_INVALID);
  EXPECT_THAT(tc_error_message(), HasSubstr("line 2: hops is 'many'"));
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
