// SPDX-License-Identifier: Apache-2.0
#include "ifunc/arguments.h"

#include <gtest/gtest.h>
#include <threechains/threechains.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/file.h"
#include "ifunc/serve_options.h"

namespace tc::command {
namespace {

TEST(Arguments, sizes_have_suffixes_in_powers_of_1024) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("16m"), 16u << 20);
  EXPECT_EQ(parse_size("3G"), 3ull << 30);
}

TEST(Arguments, what_is_no_size_or_does_not_fit_is_refused) {
  for (const auto* text : {"", "K", "-1", "1.5M", "12 ", "99999999999G", "18446744073709551616"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Arguments, hexadecimal_bytes_may_have_blanks_between_them) {
  const auto bytes = parse_hex("00 ff\n1a:2B");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(to_hex(*bytes), "00ff1a2b");
  EXPECT_TRUE(parse_hex("")->empty());
}

TEST(Arguments, half_a_byte_and_other_letters_are_refused) {
  EXPECT_FALSE(parse_hex("abc"));
  EXPECT_FALSE(parse_hex("0g"));
}

TEST(Arguments, scratch_is_a_name_and_a_size) {
  const auto both = parse_scratch("memory=4K");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->name, "memory");
  EXPECT_EQ(both->bytes, 4096u);
  for (const auto* text : {"", "a", "=4", "a=", "a=0", "a=-1", "a=4X"}) EXPECT_FALSE(parse_scratch(text)) << text;
}

TEST(Arguments, data_is_a_name_and_a_file_that_may_be_read_only) {
  const auto both = parse_data("table=/tmp/x=y");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->name, "table");
  EXPECT_EQ(both->file, "/tmp/x=y");
  EXPECT_FALSE(both->read_only);
  EXPECT_TRUE(parse_data("a=b:ro")->read_only);
  EXPECT_EQ(parse_data("a=b:ro")->file, "b");
  for (const auto* text : {"", "a", "=b", "a="}) EXPECT_FALSE(parse_data(text)) << text;
}

TEST(Arguments, addresses_have_a_port) {
  EXPECT_EQ(parse_address("10.0.0.1:7000")->port, 7000);
  EXPECT_EQ(parse_address("[::1]:0")->host, "::1");
  for (const auto* text : {"", ":1", "host", "host:", "host:65536", "host:x", "[]:1"})
    EXPECT_FALSE(parse_address(text)) << text;
}

TEST(Arguments, only_127_and_its_like_are_loopback) {
  for (const auto* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) EXPECT_TRUE(is_loopback({host, 0})) << host;
  for (const auto* host : {"0.0.0.0", "128.0.0.1", "::", "127.example.org", "127.0.0.1.example.org"})
    EXPECT_FALSE(is_loopback({host, 0})) << host;
}

TEST(Arguments, a_target_is_an_address_or_a_number_of_the_cluster) {
  EXPECT_EQ(resolve_target("1.2.3.4:5", nullptr), "1.2.3.4:5");
  EXPECT_EQ(resolve_target("1", "a:1,b:2"), "b:2");
  EXPECT_FALSE(resolve_target("2", "a:1,b:2"));
  EXPECT_FALSE(resolve_target("0", nullptr));
  EXPECT_FALSE(resolve_target("nonsense", "a:1"));
}

TEST(ServeOptions, survive_being_written_as_arguments_and_read_again) {
  ServeOptions options;
  options.data = {"a=b", "c=d:ro"};
  options.scratch = {"m=4K"};
  options.stats = true;
  options.target_args_data = "a";
  options.config_file = "node.conf";
  options.supervise = true;
  options.quiet_stop = true;
  options.metrics = "0.0.0.0:9100";
  options.metrics_open = true;
  options.metrics_hosts = {"node1", "node1.example.org"};
  for (const auto* library : {"libz.so.1", "libm.so.6"}) options.set("allow-lib", library);
  options.set("bitcode", "off");
  options.set("warm-up", "on");
  options.set("code-budget", "1M");
  options.set("id", "3");
  options.set("cluster", "127.0.0.1:1,127.0.0.1:2");
  CLI::App app;
  ServeOptions again;
  again.add_shared_to(app);
  again.add_own_to(app);
  auto arguments = options.arguments();
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(arguments);
  const auto sorted = [](auto settings) { return std::ranges::sort(settings), settings; };
  EXPECT_EQ(sorted(again.settings), sorted(options.settings));
  EXPECT_EQ(again.data, options.data);
  EXPECT_EQ(again.scratch, options.scratch);
  EXPECT_TRUE(again.stats);
  EXPECT_EQ(again.config_file, "node.conf");
  EXPECT_TRUE(again.supervise);
  EXPECT_TRUE(again.quiet_stop);
  EXPECT_EQ(again.metrics, "0.0.0.0:9100");
  EXPECT_TRUE(again.metrics_open);
  EXPECT_EQ(again.metrics_hosts, options.metrics_hosts);
}

TEST(ServeOptions, metrics_are_for_this_machine_unless_it_is_said_that_they_are_open) {
  ServeOptions options;
  for (const auto* address : {"127.0.0.1:0", "[::1]:9100", "localhost:9100", ""}) {
    options.metrics = address;
    EXPECT_TRUE(options.check()) << address;
  }
  for (const auto* address : {"0.0.0.0:9100", "10.0.0.1:9100", "[::]:9100", "some.host:9100"}) {
    options.metrics = address;
    options.metrics_open = false;
    const auto checked = options.check();
    ASSERT_FALSE(checked) << address;
    EXPECT_EQ(checked.error().code, TC_ERR_DENIED);
    EXPECT_NE(checked.error().message.find("--metrics-open"), std::string::npos);
    options.metrics_open = true;
    EXPECT_TRUE(options.check()) << address;
  }
  options.metrics = "9100";
  EXPECT_FALSE(options.check());
}

TEST(ServeOptions, every_option_of_the_library_can_be_said_to_the_command) {
  for (size_t i = 0; i < tc_option_count(); ++i) {
    const auto* const option = tc_option_at(i);
    const std::string name = tc_option_name(option);
    const bool is_switch = std::string_view(tc_option_value(option)) == "on|off";
    CLI::App app;
    ServeOptions options;
    options.add_shared_to(app);
    options.add_own_to(app);
    app.parse(std::vector<std::string>{is_switch ? "--no-" + name : fmt::format("--{}=7", name)});
    EXPECT_EQ(options.get(name), is_switch ? "off" : "7");
  }
}

class ConfigFile : public testing::Test {
 protected:
  Result<size_t> read(std::string_view text) {
    options.config_file = directory.file("node.toml");
    EXPECT_TRUE(write_file_atomically(options.config_file, as_bytes(std::string(text))));
    return options.read_config_file();
  }
  const TemporaryDirectory directory = std::move(TemporaryDirectory::create().value());
  ServeOptions options;
};

TEST_F(ConfigFile, says_what_was_not_said_otherwise) {
  options.set("id", "4");
  options.set("allow-lib", "b");
  const auto read_options = read("# ours\nid = 3\nlisten = \"none\"\nallow-lib = [\"a\"]\ntune = false\n");
  ASSERT_TRUE(read_options) << read_options.error().message;
  EXPECT_EQ(*read_options, 4u);
  using Settings = decltype(options.settings);
  EXPECT_EQ(options.settings,
            (Settings{{"listen", "none"}, {"allow-lib", "a"}, {"tune", "off"}, {"id", "4"}, {"allow-lib", "b"}}));
}

TEST_F(ConfigFile, sets_the_options_of_the_command_as_well) {
  options.data = {"table=x"};
  const auto read_options = read(
      "data = [\"graph=y:ro\"]\nscratch = \"memory=4K\"\nifunc = \"a.ifunc\"\ntarget-args-data = \"graph\"\n"
      "drain = 5\nstats = true\n");
  ASSERT_TRUE(read_options) << read_options.error().message;
  EXPECT_EQ(options.data, (std::vector<std::string>{"graph=y:ro", "table=x"}));
  EXPECT_EQ(options.scratch, std::vector<std::string>{"memory=4K"});
  EXPECT_EQ(options.ifuncs, std::vector<std::string>{"a.ifunc"});
  EXPECT_EQ(options.target_args_data, "graph");
  EXPECT_EQ(options.drain_ms(), 5u);
  EXPECT_TRUE(options.stats);
}

TEST_F(ConfigFile, counts_less_than_the_command_line_even_where_that_says_the_default) {
  options.drain = 10'000;
  options.target_args_data = "ours";
  ASSERT_TRUE(read("drain = 5\ntarget-args-data = \"theirs\"\n"));
  EXPECT_EQ(options.drain_ms(), 10'000u);
  EXPECT_EQ(options.target_args_data, "ours");
}

TEST_F(ConfigFile, is_refused_with_every_fault_and_its_line) {
  const auto read_options = read("id = 3\nring-byte = 4096\nhops = 70000\ndata = \"x\"\ndrain = -1\nlisten = none\n");
  ASSERT_FALSE(read_options);
  EXPECT_EQ(read_options.error().code, TC_ERR_INVALID);
  for (const auto* words :
       {"line 2: there is no option 'ring-byte'; did you mean 'ring-bytes'?",
        "line 3: hops is '70000' when it is a whole number from 0 to 65535", "line 4: 'x' is not NAME=FILE",
        "line 5: drain is '-1' when", "line 6: strings stand in quotes: listen = \"none\""})
    EXPECT_NE(read_options.error().message.find(words), std::string::npos) << read_options.error().message;
  EXPECT_TRUE(options.settings.empty());
}

TEST(ServeOptions, a_node_may_listen_anywhere_as_strangers_are_refused) {
  ServeOptions options;
  options.set("listen", "0.0.0.0:0");
  EXPECT_TRUE(options.check());
}

TEST(ServeOptions, to_trust_every_network_needs_trust_any) {
  ServeOptions options;
  options.set("trust-network", "10.0.0.0/8");
  EXPECT_TRUE(options.check());
  options.set("trust-network", "0.0.0.0/0");
  ASSERT_FALSE(options.check());
  EXPECT_EQ(options.check().error().code, TC_ERR_DENIED);
  options.set("trust", "any");
  EXPECT_TRUE(options.check());
}

TEST(ServeOptions, each_node_of_a_cluster_gets_the_file_with_its_number) {
  ServeOptions options;
  options.data = {"graph=/{id}/{id}.shard:ro", "table=x"};
  const auto node = options.of_node(12);
  EXPECT_EQ(node.get("id"), "12");
  EXPECT_EQ(node.data, (std::vector<std::string>{"graph=/12/12.shard:ro", "table=x"}));
}

TEST(ServeOptions, target_args_must_be_one_of_the_data) {
  ServeOptions options;
  options.data = {"a=b"};
  options.target_args_data = "c";
  EXPECT_FALSE(options.check());
  options.target_args_data = "a";
  EXPECT_TRUE(options.check());
}

}  // namespace
}  // namespace tc::command
