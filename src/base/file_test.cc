// SPDX-License-Identifier: Apache-2.0

#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace tc {
namespace {

using testing::HasSubstr;

class SettingsFile : public testing::Test {
 protected:
  Result<std::vector<Setting>> read(std::string_view text) const {
    EXPECT_TRUE(write_file_atomically(path, as_bytes(std::string(text))));
    return read_settings(path);
  }
  const TemporaryDirectory directory = std::move(TemporaryDirectory::create().value());
  const std::string path = directory.file("settings");
};

TEST_F(SettingsFile, each_line_is_a_key_and_a_value_without_the_blanks_around_them) {
  const auto settings = read("listen = 127.0.0.1:7000\n\tallow-lib=libz.so.1  \r\nname = a = b\ncache-dir =");
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->size(), 4u);
  EXPECT_EQ((*settings)[0].key, "listen");
  EXPECT_EQ((*settings)[0].value, "127.0.0.1:7000");
  EXPECT_EQ((*settings)[1].key, "allow-lib");
  EXPECT_EQ((*settings)[1].value, "libz.so.1");
  EXPECT_EQ((*settings)[1].line, 2u);
  EXPECT_EQ((*settings)[2].value, "a = b");
  EXPECT_EQ((*settings)[3].value, "");
}

TEST_F(SettingsFile, empty_lines_and_comments_are_left_out_and_counted) {
  const auto settings = read("# a node\n\n  # of ours = 1\nid = 3\n");
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->size(), 1u);
  EXPECT_EQ(settings->front().line, 4u);
}

TEST_F(SettingsFile, a_line_that_is_no_setting_is_refused_with_its_number) {
  for (const auto* wrong : {"id = 3\nwarm-up\n", "id = 3\n= on\n"}) {
    const auto settings = read(wrong);
    ASSERT_FALSE(settings);
    EXPECT_EQ(settings.error().code, TC_ERR_INVALID);
    EXPECT_THAT(settings.error().message, HasSubstr("line 2"));
  }
}

TEST_F(SettingsFile, a_file_that_is_not_there_is_not_found) {
  EXPECT_EQ(read_settings(path + "-nowhere").error().code, TC_ERR_NOT_FOUND);
}

}  // namespace
}  // namespace tc
