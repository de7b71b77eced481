// SPDX-License-Identifier: Apache-2.0
//
// A cell that was taken over does what it likes to its node, which kills it and goes on.
#include <csignal>
#include <cstdlib>

#include "cell/testing/cell_test_kit.h"

namespace tc::cell {
namespace {

using ::testing::HasSubstr;
using testing::TestCell;

// Answers and calls it as a node does, until it has ended.
Ending ending_of(const char* how) {
  TestCell cell({.program = TC_HOSTILE_CELL, .libraries = {how}, .ring_bytes = 4096, .message_bytes = 100'000});
  if (cell.run_until([&] { return cell.cell->is_idle(); })) cell.begin({});
  return cell.ending();
}

class HostileCell : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(HostileCell, is_killed_when_it_breaks_the_protocol) {
  const auto [how, why] = GetParam();
  const auto ending = ending_of(how);
  EXPECT_EQ(ending.kind, Ending::Kind::broke_protocol) << ending.text();
  EXPECT_EQ(ending.signal, SIGKILL);
  EXPECT_THAT(ending.why, HasSubstr(why));
}

INSTANTIATE_TEST_SUITE_P(Ways, HostileCell,
                         ::testing::Values(std::pair{"early", "a message of kind 2 of call 1, when none such was due"},
                                           std::pair{"short-greeting", "greeting of a cell"},
                                           std::pair{"few-functions", "it has 0 and 0 functions"},
                                           std::pair{"long-frame", "a frame reaches past the end of the ring"},
                                           std::pair{"no-call", "a message of kind 5 of call 7"},
                                           std::pair{"twice-ready", "a message of kind 1 of call 0"},
                                           std::pair{"unknown-kind", "a message of kind 9 of call 1"},
                                           std::pair{"mapped", "a message of kind 6"},
                                           std::pair{"resolved", "a message of kind 7"},
                                           std::pair{"endless-message", "a message has more than 100000 bytes"},
                                           std::pair{"empty-parts", "a part of a message has 0 bytes when each has"},
                                           std::pair{"empty-packet", "it sent an empty packet"},
                                           std::pair{"other-call", "a message of kind 5 of call 99"},
                                           std::pair{"two-replies", "a message of kind 2 of call 1"},
                                           std::pair{"reply-while-asking", "a message of kind 2 of call 1"},
                                           std::pair{"wrong-log", "line of a cell's log"},
                                           std::pair{"bells", "bells when this node slept"}),
                         [](const auto& info) {
                           std::string name = info.param.first;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(HostileCellAlone, a_forged_crash_record_says_only_what_the_kernel_says_too) {
  const auto ending = ending_of("record");
  EXPECT_EQ(ending.kind, Ending::Kind::crashed);
  EXPECT_EQ(ending.signal, SIGKILL);
  ASSERT_TRUE(ending.crash);
  EXPECT_EQ(ending.crash->frames.size(), CrashRecord::most_frames);
}

// Its node would hear nothing more of it, and could not sleep any more.
TEST(HostileCellAlone, that_closes_its_socket_and_lives_on_is_ended) {
  const auto ending = ending_of("closed-socket");
  EXPECT_EQ(ending.kind, Ending::Kind::crashed) << ending.text();
  EXPECT_EQ(ending.signal, SIGKILL);
}

TEST(HostileCellAlone, pads_that_lead_to_each_other_do_not_keep_its_node) {
  TestCell cell({.program = TC_HOSTILE_CELL, .libraries = {"pads"}, .ring_bytes = 4096});
  ASSERT_TRUE(cell.run_until([&] { return cell.cell->has_frames(); }));
  cell.step();
  cell.cell->kill("it says nothing");
  EXPECT_EQ(cell.ending().kind, Ending::Kind::not_started);
}

}  // namespace
}  // namespace tc::cell
