// SPDX-License-Identifier: Apache-2.0
#include "trust/last_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "trust/testing/keys.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;
using testing::public_key;

Time at(std::string_view text) { return parse_time(text).value(); }

class LastUsesFile : public ::testing::Test {
 protected:
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  LastUses uses_{directory_.path() / "last-uses"};
};

TEST_F(LastUsesFile, that_is_not_there_has_none) { EXPECT_TRUE(uses_.read()->empty()); }

TEST_F(LastUsesFile, keeps_the_later_time_of_each_key_whoever_writes_it) {
  ASSERT_TRUE(uses_.record({{public_key(1), at("2026-01-02")}, {public_key(2), at("2026-01-02")}}));
  ASSERT_TRUE(uses_.record({{public_key(1), at("2026-01-01")}, {public_key(2), at("2026-01-03T00:00:07Z")}}));
  const UseTimes expected{{public_key(1), at("2026-01-02")}, {public_key(2), at("2026-01-03T00:00:07Z")}};
  EXPECT_EQ(uses_.read().value(), expected);
}

TEST_F(LastUsesFile, is_its_owners_alone) {
  ASSERT_TRUE(uses_.record({{public_key(1), at("2026-01-02")}}));
  struct stat info{};
  ASSERT_EQ(::stat(uses_.file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LastUsesFile, that_is_malformed_is_told_by_its_line_and_begun_anew) {
  ASSERT_TRUE(write_file_atomically(uses_.file(), as_bytes(public_key(1).text() + " 2026-01-02\nnonsense\n")));
  ASSERT_FALSE(uses_.read());
  EXPECT_THAT(uses_.read().error().message, HasSubstr("last-uses, line 2: "));
  ASSERT_TRUE(uses_.record({{public_key(2), at("2026-01-02")}}));
  EXPECT_EQ(uses_.read()->size(), 1u);
}

TEST_F(LastUsesFile, loses_its_oldest_lines_when_there_are_too_many) {
  UseTimes many;
  for (unsigned i = 0; i < 10'010; ++i) {
    PublicKey key = public_key(1);
    key.bytes[0] = static_cast<std::byte>(i);
    key.bytes[1] = static_cast<std::byte>(i >> 8);
    many.emplace(key, at("2026-01-02") + std::chrono::seconds(i));
  }
  ASSERT_TRUE(uses_.record(many));
  const auto kept = uses_.read();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->size(), 10'000u);
  for (const auto& [key, time] : *kept) ASSERT_GE(time, at("2026-01-02") + std::chrono::seconds(10));
}

}  // namespace
}  // namespace tc::trust
