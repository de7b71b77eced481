// SPDX-License-Identifier: Apache-2.0
#include "source/code_table.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tc::source {
namespace {

ContentId id_of(std::string_view code) { return ContentId::of(as_bytes(code)); }

TEST(CodeTable, a_peer_that_was_never_offered_code_has_no_number_for_it) {
  CodeTable table;
  EXPECT_EQ(table.number_of(3), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  EXPECT_EQ(table.id_of(0), nullptr);
}

TEST(CodeTable, numbers_are_dense_and_found_by_index_and_by_content) {
  CodeTable table;
  EXPECT_EQ(table.assign(id_of("a"), 5), 0u);
  table.set_sent(0, 5);
  EXPECT_EQ(table.assign(id_of("b"), CodeTable::none), 1u);
  table.set_sent(1, CodeTable::none);
  EXPECT_EQ(table.number_of(5), 0u);
  EXPECT_EQ(table.number_of(id_of("b")), 1u);
}

TEST(CodeTable, another_ifunc_of_the_same_code_gets_its_number_whatever_its_index_is) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 0), 0u);
  table.set_sent(0, 0);
  for (const uint32_t index : {1u, 1000u, 7u}) {
    table.alias(index, 0);
    EXPECT_EQ(table.number_of(index), 0u);
  }
  EXPECT_EQ(table.number_of(999), CodeTable::none);
  table.alias(CodeTable::none, 0);
}

TEST(CodeTable, a_number_leads_to_its_code_and_one_never_used_to_none) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 0), 0u);
  ASSERT_NE(table.id_of(0), nullptr);
  EXPECT_EQ(*table.id_of(0), id_of("a"));
  EXPECT_EQ(table.id_of(1), nullptr);
}

TEST(CodeTable, no_call_finds_a_number_before_its_code_has_left) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
  EXPECT_EQ(table.number_of(2), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  table.set_sent(0, 2);
  EXPECT_EQ(table.number_of(2), 0u);
  EXPECT_EQ(table.number_of(id_of("a")), 0u);
}

TEST(CodeTable, of_two_numbers_for_the_same_code_the_one_that_left_first_is_used) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
  ASSERT_EQ(table.assign(id_of("a"), 3), 1u);
  table.set_sent(1, 3);
  table.set_sent(0, 2);
  EXPECT_EQ(table.number_of(2), 1u);
  EXPECT_EQ(table.number_of(3), 1u);
  EXPECT_EQ(table.number_of(id_of("a")), 1u);
}

TEST(CodeTable, a_number_stands_for_code_and_for_those_on_whose_behalf_it_is_called) {
  const auto chain_of = [](std::byte key) {
    wire::Chain::Key bytes;
    bytes.fill(key);
    return std::make_shared<const wire::Chain>(std::vector{bytes});
  };
  const auto ana = chain_of(std::byte{1}), bob = chain_of(std::byte{2});
  CodeTable table;
  for (const auto& chain : {wire::SharedChain(), ana, bob}) {
    const auto number = table.assign(id_of("a"), CodeTable::none, chain).value();
    table.set_sent(number, CodeTable::none);
    EXPECT_EQ(table.number_of(id_of("a"), chain), number);
    EXPECT_EQ(*table.id_of(number), id_of("a"));
    EXPECT_EQ(table.chain_of(number), chain);
  }
  EXPECT_EQ(table.number_of(id_of("a"), chain_of(std::byte{2})), 2u) << "an equal one will do";
  table.withdraw(1);
  EXPECT_EQ(table.number_of(id_of("a"), ana), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a"), bob), 2u);
  std::vector<uint32_t> withdrawn;
  table.withdraw_all(id_of("a"), [&](uint32_t number) { withdrawn.push_back(number); });
  EXPECT_EQ(withdrawn, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a"), bob), CodeTable::none);
}

TEST(CodeTable, numbers_of_code_that_did_not_leave_are_not_used_up) {
  CodeTable table;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
    table.give_back(0);
    EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  }
}

TEST(CodeTable, code_that_has_to_be_sent_again_takes_another_number) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
  table.set_sent(0, 2);
  table.withdraw(0);
  EXPECT_EQ(table.number_of(2), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  EXPECT_EQ(table.assign(id_of("a"), 2), 1u);
  table.set_sent(1, 2);
  EXPECT_EQ(table.number_of(2), 1u);
}

TEST(CodeTable, a_peer_is_sent_as_many_ifuncs_as_it_takes_and_no_more) {
  CodeTable table;
  ContentId id{};
  constexpr uint32_t limit = 1u << 20;  // receivers refuse larger numbers
  for (uint32_t number = 0; number < limit; ++number) {
    std::memcpy(id.bytes.data(), &number, sizeof number);
    ASSERT_EQ(table.assign(id, CodeTable::none), number);
  }
  const auto beyond = table.assign(id_of("a"), 0);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, TC_ERR_LIMIT);
  EXPECT_EQ(table.number_of(0), CodeTable::none);
}

}  // namespace
}  // namespace tc::source
