// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/record.h"

#include <gtest/gtest.h>

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
