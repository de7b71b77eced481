// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tc::top {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string fast = "2000,1,1,0,0,0,0,0,0,0,0,0,0,0,0", slow = "8000000,0,0,0,0,0,0,2,0,0,0,0,0,0,0";

Told told(const std::string& name, uint64_t uptime_s, const std::string& lines) {
  const auto parsed = command::parse_told(
      fmt::format("name {}\nversion 1.0.0\nuptime-ns {}\ndraining 0\n{}", name, uptime_s * 1'000'000'000, lines));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return *parsed;
}

Seen seen(const std::string& address, std::optional<Told> before, Told now) {
  return {.address = address,
          .before = std::move(before),
          .now = std::move(now),
          .error = {},
          .exit_code = 0,
          .again_in_s = {},
          .looks = 2};
}

Seen lost(const std::string& address, const std::string& why, int exit_code) {
  return {
      .address = address, .before = {}, .now = {}, .error = why, .exit_code = exit_code, .again_in_s = 4.2, .looks = 2};
}

// Calls of two ifuncs, by two links.
Seen north() {
  const auto lines = [](uint64_t calls) {
    return fmt::format(
        "running grep\nstat executed {0}\nstat failures 3\nstat links 2\nstat codes 2\nstat cell-deaths 1\n"
        "failure denied 3\nifunc {0} 3 {1} {2} grep\nifunc 7 0 {2} {2} sort\n"
        "link tls {0} {0}000 500 12 client\nlink shm 1 2 3 0 local\n",
        calls, fast, slow);
  };
  return seen("127.0.0.1:7000", told("north", 10, lines(1000)), told("north", 12, lines(3400)));
}

std::string text(View& view, Size size = {80, 24}) {
  std::string all;
  for (const auto& line : view.lines(size, "12:00:00Z")) all += text_of(line) + "\n";
  return all;
}

TEST(TopView, shows_a_node_with_its_rates_and_ifuncs) {
  View view(2, "");
  view.show({north()});
  const auto screen = text(view);
  EXPECT_THAT(screen, HasSubstr("ifunc top: 1 node "));
  EXPECT_THAT(screen, HasSubstr("ok     north    127.0.0.1:7000    12s   1.2k      0 1.2 MB    0 B    2    2    1\n"));
  EXPECT_THAT(screen, HasSubstr("ifuncs of north, runs grep"));
  EXPECT_THAT(screen, HasSubstr("grep           1.2k      0  1.0 us <1.0 us"));
  EXPECT_LT(screen.find("\ngrep "), screen.find("\nsort "));
}

TEST(TopView, shows_links_and_numbers_where_it_is_told_to) {
  View view(2, "");
  view.show({north()});
  EXPECT_TRUE(view.press('2'));
  EXPECT_THAT(text(view), HasSubstr("client"));
  EXPECT_THAT(text(view), Not(HasSubstr("\nsort ")));
  EXPECT_TRUE(view.press('\t'));
  EXPECT_THAT(text(view), HasSubstr("failures: denied"));
  EXPECT_TRUE(view.press('\t'));
  EXPECT_THAT(text(view), HasSubstr("[1 ifuncs]"));
}

TEST(TopView, sorts_by_the_column_that_was_chosen_and_in_reverse) {
  View view(2, "mean");
  view.show({north()});
  auto screen = text(view);
  EXPECT_LT(screen.find("\nsort "), screen.find("\ngrep "));
  view.press('r');
  screen = text(view);
  EXPECT_LT(screen.find("\ngrep "), screen.find("\nsort "));
  for (int i = 0; i < 3; ++i) view.press('<');  // mean, failures, calls, name
  screen = text(view);
  EXPECT_LT(screen.find("\ngrep "), screen.find("\nsort "));
  view.press('r');
  screen = text(view);
  EXPECT_LT(screen.find("\nsort "), screen.find("\ngrep "));
}

TEST(TopView, keeps_a_node_that_does_not_answer_with_the_reason) {
  View view(2, "");
  view.show({north(), lost("10.0.0.7:7000", "connecting to 10.0.0.7:7000: nobody is there", 69),
             lost("10.0.0.8:7000", "it does not trust us", 77)});
  const auto screen = text(view);
  EXPECT_THAT(screen, HasSubstr("3 nodes, 2 without an answer"));
  EXPECT_THAT(screen, HasSubstr("gone   -        10.0.0.7:7000  4 s: nobody is there"));
  EXPECT_THAT(screen, HasSubstr("denied -        10.0.0.8:7000  4 s: it does not trust us"));
  EXPECT_EQ(view.exit_code(), 77);
}

TEST(TopView, sums_all_nodes_until_one_is_selected) {
  View view(2, "");
  auto south = north();
  south.now->name = "south";
  view.show({north(), south, lost("10.0.0.7:7000", "nobody is there", 69)});
  EXPECT_THAT(text(view), HasSubstr("ifuncs of all nodes"));
  EXPECT_THAT(text(view), HasSubstr("       all 3                            2.4k"));
  EXPECT_THAT(text(view), HasSubstr("grep           2.4k"));
  view.press(Key::down);
  EXPECT_THAT(text(view), HasSubstr("ifuncs of north"));
  EXPECT_THAT(text(view), HasSubstr("grep           1.2k"));
  view.press(Key::end);
  EXPECT_THAT(text(view), HasSubstr("ifuncs of 10.0.0.7:7000"));
  view.press(Key::down);
  EXPECT_THAT(text(view), HasSubstr("ifuncs of 10.0.0.7:7000"));
  view.press(Key::home);
  view.press(Key::up);
  EXPECT_THAT(text(view), HasSubstr("ifuncs of all nodes"));
}

TEST(TopView, is_left_by_the_keys_of_other_tops_and_help_by_any) {
  View view(2, "");
  view.show({north()});
  for (const int key : {int{'q'}, 27, 3}) EXPECT_FALSE(view.press(key));
  EXPECT_TRUE(view.press('h'));
  EXPECT_THAT(text(view), HasSubstr("any key goes back"));
  EXPECT_TRUE(view.press(27));
  EXPECT_THAT(text(view), HasSubstr("ifuncs of north"));
  view.press('?');
  EXPECT_FALSE(view.press('q'));
}

TEST(TopView, pauses_and_changes_its_interval_within_bounds) {
  View view(2, "");
  view.show({north()});
  view.press('p');
  EXPECT_TRUE(view.is_paused());
  EXPECT_THAT(text(view), HasSubstr("PAUSED"));
  view.press(' ');
  EXPECT_FALSE(view.is_paused());
  view.press('-');
  EXPECT_EQ(view.interval_s(), 1);
  for (int i = 0; i < 20; ++i) view.press('-');
  EXPECT_EQ(view.interval_s(), View::least_interval_s);
  for (int i = 0; i < 20; ++i) view.press('+');
  EXPECT_EQ(view.interval_s(), View::most_interval_s);
}

TEST(TopView, is_exactly_as_large_as_the_screen_whatever_keys_were_pressed) {
  View view(2, "");
  std::vector<Seen> nodes{north(), lost("10.0.0.7:7000", std::string(300, 'x'), 69)};
  for (int i = 0; i < 12; ++i) nodes.push_back(north());
  for (const int key : {0, int{'\t'}, int{Key::page_down}, int{Key::end}, int{'\t'}, int{Key::page_down},
                        int{Key::page_up}, int{'>'}, int{'h'}}) {
    view.show(nodes);
    view.press(key);
    for (const size_t height : {1, 2, 3, 5, 24, 60})
      for (const size_t width : {1, 7, 79, 80, 132}) {
        const auto lines = view.lines({width, height}, "12:00:00Z");
        ASSERT_EQ(lines.size(), height);
        for (const auto& line : lines) {
          size_t used = 0;
          for (const auto& piece : line) used += cells(piece.text);
          ASSERT_EQ(used, width) << height << '\n' << text_of(line);
        }
      }
  }
}

TEST(TopView, without_nodes_or_looks_is_empty_and_takes_keys) {
  for (const auto& nodes : {std::vector<Seen>(), std::vector<Seen>(2, Seen{.address = "a:1",
                                                                           .before = {},
                                                                           .now = {},
                                                                           .error = {},
                                                                           .exit_code = 0,
                                                                           .again_in_s = {},
                                                                           .looks = 0})}) {
    View view(2, "");
    view.show(nodes);
    for (int key = 0; key < 128; ++key) {
      view.press(key);
      EXPECT_EQ(view.lines({80, 24}, "").size(), 24u);
    }
    for (const int key :
         {Key::up, Key::down, Key::home, Key::end, Key::page_up, Key::page_down, Key::left, Key::right}) {
      view.press(key);
      EXPECT_EQ(view.lines({80, 24}, "").size(), 24u);
    }
  }
}

TEST(TopView, scrolls_to_the_last_ifunc_and_no_further) {
  std::string lines = "stat executed 1\n";
  for (int i = 0; i < 90; ++i) lines += fmt::format("ifunc {} 0 {} {} f{:02}\n", 1000 - i, fast, fast, i);
  View view(2, "total");
  view.show({seen("a:1", {}, told("n", 1, lines))});
  EXPECT_THAT(text(view), HasSubstr("\nf00 "));
  for (int i = 0; i < 20; ++i) view.press(Key::page_down);
  EXPECT_THAT(text(view), HasSubstr("\nf89 "));
  EXPECT_THAT(text(view), HasSubstr("\nf75 ")) << "the pane is full";
  for (int i = 0; i < 20; ++i) view.press(Key::page_up);
  EXPECT_THAT(text(view), HasSubstr("\nf00 "));
}

TEST(TopView, lets_no_text_of_a_node_reach_the_terminal_as_it_is) {
  auto node = north();
  node.now->name = "no\x1b[31mrth\r\n";
  node.now->running = "\x1b]0;title\x07";
  node.now->ifuncs[0].name = "\x1b[2J\xff" + std::string(500, 'x');
  node.now->links[0].peer =
      "\xc2\x9b"
      "31m";
  node.now->statistics.emplace_back("\x1b[H", 1);
  View view(2, "");
  view.show({node, lost("a:1", "it says \x1b[2J", 1)});
  for (int i = 0; i < 6; ++i) {
    view.press(i == 3 ? int{Key::down} : int{'\t'});
    for (const char letter : text(view)) EXPECT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
  }
  for (const auto& line : view.everything(132, "now"))
    for (const char letter : text_of(line)) EXPECT_TRUE(letter >= ' ' && letter <= '~');
}

TEST(TopView, tells_a_file_of_all_nodes_ifuncs_and_links) {
  View view(2, "");
  std::vector<Seen> nodes;
  for (int i = 0; i < 50; ++i) nodes.push_back(north());
  nodes.back().now->name = "the last one";
  view.show(nodes);
  std::string all;
  for (const auto& line : view.everything(132, "now")) all += text_of(line) + "\n";
  for (const auto* const word : {"the last one", "\ngrep ", "\nsort ", "\nclient ", "\nlocal "})
    EXPECT_THAT(all, HasSubstr(word));
}

}  // namespace
}  // namespace tc::top
