// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/record.h"

#include <gtest/gtest.h>

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {
namespace {

// RFC 8032, 7.1, test 1: a key that is fixed, as text.
constexpr std::string_view key_text = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

const Record sample{.informed = false,
                    .id = 3,
                    .count = 8,
                    .host = "north",
                    .address = "10.0.0.4:41234",
                    .key = trust::PublicKey::parse(key_text).value()};

TEST(BootstrapRecord, is_one_line_that_people_can_read) {
  EXPECT_EQ(encode(sample),
            "threechains-node 2 w 3 of 8 on north at 10.0.0.4:41234 key "
            "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\n");
}

TEST(BootstrapRecord, reads_back_what_was_written) {
  for (const bool informed : {false, true}) {
    auto wanted = sample;
    wanted.informed = informed;
    const auto got = decode(encode(wanted));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->informed, informed);
    EXPECT_EQ(got->id, 3u);
    EXPECT_EQ(got->count, 8u);
    EXPECT_EQ(got->host, "north");
    EXPECT_EQ(got->address, "10.0.0.4:41234");
    EXPECT_EQ(got->key.text(), key_text);
  }
}

TEST(BootstrapRecord, becomes_informed_by_one_byte) {
  auto text = encode(sample);
  text[informed_offset] = informed_mark;
  const auto got = decode(text);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(got->informed);
}

TEST(BootstrapRecord, that_is_cut_off_anywhere_is_refused) {
  const auto text = encode(sample);
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(decode(text.substr(0, size))) << size;
}

TEST(BootstrapRecord, with_numbers_or_addresses_that_make_no_sense_is_refused) {
  const auto line = [](const char* id, const char* count, const std::string& address) {
    return fmt::format("threechains-node 2 w {} of {} on north at {} key {}\n", id, count, address, key_text);
  };
  ASSERT_TRUE(decode(line("3", "8", "a:1")));
  for (const char* id : {"8", "-1", "3x", "4294967299", "+3"}) EXPECT_FALSE(decode(line(id, "8", "a:1"))) << id;
  for (const char* count : {"0", "65537", "99999999999"}) EXPECT_FALSE(decode(line("3", count, "a:1"))) << count;
  for (const char* address : {"", "a:1,b:2", "a b", "a\tb", "\x80:1"})
    EXPECT_FALSE(decode(line("3", "8", address))) << address;
  EXPECT_FALSE(decode(line("3", "8", std::string(256, 'a'))));
  EXPECT_FALSE(decode(line("3", "8", std::string(5000, 'a'))));
  EXPECT_FALSE(decode(line("3", "8", std::string("a\0b", 3))));
}

TEST(BootstrapRecord, with_another_word_in_the_place_of_one_of_its_own_is_refused) {
  const std::vector<std::string> words{
      "w", "3", "of", "8", "on", "north", "at", "10.0.0.4:41234", "key", std::string(key_text)};
  const auto line = [](const std::vector<std::string>& all) {
    return fmt::format("threechains-node 2 {}\n", fmt::join(all, " "));
  };
  ASSERT_EQ(line(words), encode(sample));
  for (const size_t place : {0u, 1u, 2u, 3u, 4u, 6u, 8u})
    for (const char* other : {"x", "W", "I", "o", "ofs", "keys", "3.", "0x3"}) {
      auto changed = words;
      changed[place] = other;
      const auto got = decode(line(changed));
      ASSERT_FALSE(got) << line(changed);
      EXPECT_EQ(got.error().code, TC_ERR_MALFORMED) << line(changed);
      EXPECT_NE(got.error().message.find("only begin like"), std::string::npos) << got.error().message;
    }
}

TEST(BootstrapRecord, with_another_beginning_is_no_record_at_all) {
  for (const char* beginning : {"", "threechains-nodE ", " threechains-node ", "threechains-node"}) {
    const auto got = decode(beginning + encode(sample).substr(std::string_view("threechains-node ").size()));
    ASSERT_FALSE(got) << beginning;
    EXPECT_EQ(got.error().code, TC_ERR_MALFORMED) << beginning;
    EXPECT_NE(got.error().message.find("that are not a node's record"), std::string::npos) << got.error().message;
  }
}

// Zeros in front of a number count for its length only.
TEST(BootstrapRecord, is_read_up_to_its_largest_size_and_refused_above_it) {
  const auto of_size = [](size_t size) {
    auto text = encode(sample);
    return text.insert(text.find("3 of"), size - text.size(), '0');
  };
  const auto largest = decode(of_size(max_record_bytes));
  ASSERT_TRUE(largest) << largest.error().message;
  EXPECT_EQ(largest->id, sample.id);
  const auto larger = decode(of_size(max_record_bytes + 1));
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().message, "1025 bytes that are not a node's record");
}

TEST(BootstrapRecord, of_the_last_node_of_as_many_as_there_can_be_is_read) {
  auto last = sample;
  last.count = max_nodes;
  last.id = max_nodes - 1;
  const auto got = decode(encode(last));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->count, 65536u);
  EXPECT_EQ(got->id, 65535u);
}

TEST(BootstrapRecord, with_a_key_that_is_none_is_refused) {
  const auto line = [](std::string_view key) {
    return fmt::format("threechains-node 2 w 3 of 8 on north at a:1 key {}\n", key);
  };
  ASSERT_TRUE(decode(line(key_text)));
  for (const auto key : {"", "ed25519:", "x", "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR"})
    EXPECT_FALSE(decode(line(key))) << key;
  EXPECT_FALSE(decode(line(std::string(key_text) + "o")));
  EXPECT_FALSE(decode(line(std::string(key_text) + " more")));
}

TEST(BootstrapRecord, of_another_version_is_named_as_such) {
  for (const std::string text :
       {"threechains-node 1 w 3 of 8 on north at 10.0.0.4:41234\n", "threechains-node 3 anything at all\n"}) {
    const auto got = decode(text);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, TC_ERR_VERSION) << text;
    EXPECT_NE(got.error().message.find("version 2"), std::string::npos) << got.error().message;
  }
}

}  // namespace
}  // namespace tc::node::bootstrap
