// SPDX-License-Identifier: Apache-2.0
#include "wire/cluster_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tc::wire {
namespace {

using testing::HasSubstr;

TEST(Notice, a_death_is_read_as_it_was_written) {
  const auto gone = decode_gone(encode_gone({1, 2, 3, "node", "it vanished"})).value();
  EXPECT_EQ(gone.instance, 1u);
  EXPECT_EQ(gone.witness, 2u);
  EXPECT_EQ(gone.node_id, 3u);
  EXPECT_EQ(gone.name, "node");
  EXPECT_EQ(gone.reason, "it vanished");
}

TEST(Notice, the_name_of_a_dead_node_cannot_forge_lines_of_the_log) {
  for (const auto* const name : {"a\nnode 1 is well", "\x1b[2J", "\x7f"}) {
    const auto gone = decode_gone(encode_gone({1, 2, 3, name, "it vanished"}));
    ASSERT_FALSE(gone) << name;
    EXPECT_EQ(gone.error().code, TC_ERR_MALFORMED);
    EXPECT_THAT(gone.error().message, HasSubstr("its name is not printable"));
  }
}

TEST(Notice, the_reason_of_a_death_cannot_steer_a_terminal) {
  const auto gone = decode_gone(encode_gone({1, 2, 3, "node", "first\nsecond\x1b[2J\r\x7f"})).value();
  EXPECT_EQ(gone.reason, "first\nsecond?[2J??");
}

TEST(Notice, a_marker_has_the_flags_that_are_known) {
  for (uint8_t flags = 0; flags < 8; ++flags) {
    const auto marker = decode_marker(encode_marker({5, 6, flags}));
    ASSERT_EQ(marker.has_value(), flags <= 3) << int{flags};
    if (!marker) continue;
    EXPECT_EQ(marker->origin, 5u);
    EXPECT_EQ(marker->number, 6u);
    EXPECT_EQ(marker->flags, flags);
  }
}

TEST(Notice, a_report_is_read_as_it_was_written) {
  for (const bool is_void : {false, true}) {
    const auto report = decode_report(encode_report({5, 6, is_void, {7, 8, 9}})).value();
    EXPECT_EQ(report.origin, 5u);
    EXPECT_EQ(report.number, 6u);
    EXPECT_EQ(report.is_void, is_void);
    EXPECT_THAT(report.tokens, testing::ElementsAre(7u, 8u, 9u));
  }
}

TEST(Notice, a_report_with_another_verdict_is_refused) {
  auto bytes = encode_report({5, 6, false, {}});
  bytes[12] = std::byte{2};
  const auto report = decode_report(bytes);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("its verdict is 2 when 0 and 1 are known"));
}

TEST(Notice, what_is_cut_short_or_has_bytes_behind_it_is_refused) {
  const auto refused_but_whole = [](const Bytes& whole, auto decode) {
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(decode(ByteView(whole).first(size))) << size << " of " << whole.size();
    auto longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode(longer));
  };
  refused_but_whole(encode_gone({1, 2, 3, "node", "it vanished"}), decode_gone);
  refused_but_whole(encode_marker({5, 6, 0}), decode_marker);
  refused_but_whole(encode_report({5, 6, false, {}}), decode_report);
}

}  // namespace
}  // namespace tc::wire
