// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tc::top {
namespace {

using ::testing::ElementsAre;

Row row(const char* name, std::optional<long double> number) {
  return {.cells = {{.text = name, .is_text = true}, {.text = number ? "n" : "-", .number = number}}};
}

Table table() {
  return {.columns = {{"name", "NAME", Side::left, 4, 10}, {"number", "NUMBER", Side::right, 6, 6, 1}},
          .rows = {row("d", 2), row("a", {}), row("c", 5), row("b", 2), row("e", {})}};
}

std::vector<std::string> names(const Table& table) {
  std::vector<std::string> all;
  for (const auto& row : table.rows) all.push_back(row.cells[0].text);
  return all;
}

TEST(TopTable, is_sorted_with_the_greatest_number_first_and_what_is_alike_as_it_was) {
  auto one = table();
  one.sort(1, false);
  EXPECT_THAT(names(one), ElementsAre("c", "d", "b", "a", "e"));
  one.sort(1, false);
  EXPECT_THAT(names(one), ElementsAre("c", "d", "b", "a", "e"));
}

TEST(TopTable, has_what_has_no_value_last_also_in_reverse) {
  auto one = table();
  one.sort(1, true);
  EXPECT_THAT(names(one), ElementsAre("d", "b", "c", "a", "e"));
}

TEST(TopTable, is_sorted_by_text_from_a_to_z) {
  auto one = table();
  one.sort(*one.column("name"), false);
  EXPECT_THAT(names(one), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_FALSE(one.column("no such"));
}

TEST(TopTable, tells_the_greatest_numbers_apart) {
  Table one{.columns = table().columns, .rows = {row("a", UINT64_MAX - 1), row("b", UINT64_MAX)}};
  one.sort(1, false);
  EXPECT_THAT(names(one), ElementsAre("b", "a"));
}

TEST(TopTable, is_as_wide_as_it_is_told) {
  auto one = table();
  one.rows[0].cells[0].text = "a name that is too long";
  for (size_t width = 0; width < 40; ++width) {
    const Layout layout(one, width);
    for (const auto& line : {layout.header(one, 0), layout.line(one.rows[0], true), layout.line(one.rows[1], false)}) {
      size_t used = 0;
      for (const auto& piece : line) used += cells(piece.text);
      EXPECT_EQ(used, width);
    }
  }
  EXPECT_EQ(text_of(Layout(one, 11).line(one.rows[0], false)), "a n~      n");
  EXPECT_EQ(text_of(Layout(one, 14).line(one.rows[0], false)), "a name~      n") << "a text takes what room there is";
  EXPECT_EQ(text_of(Layout(one, 10).header(one, {})), "NAME") << "and a column leaves where there is none";
}

TEST(TopTable, may_have_a_sentence_instead_of_cells) {
  auto one = table();
  one.rows[0].instead = "is not there";
  one.rows[0].instead_from = 1;
  EXPECT_EQ(text_of(Layout(one, 30).line(one.rows[0], false)), "d    is not there");
  EXPECT_EQ(text_of(Layout(one, 12).line(one.rows[0], false)), "d    is not~");
}

}  // namespace
}  // namespace tc::top
