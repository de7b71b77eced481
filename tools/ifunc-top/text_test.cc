// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace tc::top {
namespace {

TEST(TopText, is_padded_and_cut_to_a_width) {
  EXPECT_EQ(fit("abc", 5), "abc  ");
  EXPECT_EQ(fit("abc", 5, Side::right), "  abc");
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("abcdefg", 6), "abcde~");
  EXPECT_EQ(fit("abc", 1), "~");
  EXPECT_EQ(fit("abc", 0), "");
  EXPECT_EQ(fit("", 2), "  ");
}

TEST(TopText, has_nothing_that_a_terminal_obeys) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(printable("a\nb\tc\rd\x7f"), "a?b?c?d?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m")
      << "CSI of eight bits, as UTF-8";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m")
      << "and as a byte";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("user\xe2\x80\xaetxt"), "user?txt") << "right to left";
  EXPECT_EQ(printable("e\xcc\x81"), "e?") << "an accent over the letter before it";
}

TEST(TopText, of_broken_utf8_has_question_marks) {
  EXPECT_EQ(printable("\xc3"), "?") << "cut off";
  EXPECT_EQ(printable("\xc3z"), "?z");
  EXPECT_EQ(printable("\xc0\xaf"), "??") << "longer than it need be";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "???");
  EXPECT_EQ(printable("\xed\xa0\x80"), "?") << "half of a pair of UTF-16";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "?") << "beyond the last letter";
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(TopText, counts_cells_and_not_bytes) {
  EXPECT_EQ(cells("gr\xc3\xbc\xc3\x9f"), 4u);
  EXPECT_EQ(cells("\xe6\x97\xa5\xe6\x9c\xac"), 4u);
  EXPECT_EQ(fit("gr\xc3\xbc\xc3\x9f", 5), "gr\xc3\xbc\xc3\x9f ");
  EXPECT_EQ(fit("\xe6\x97\xa5\xe6\x9c\xac", 3), "\xe6\x97\xa5~");
  EXPECT_EQ(fit("\xe6\x97\xa5\xe6\x9c\xac", 2), " ~") << "half of a wide letter is none";
  EXPECT_EQ(only_ascii("gr\xc3\xbc\xc3\x9f \xe6\x97\xa5"), "gr?? ??");
}

TEST(TopText, of_each_byte_is_as_wide_as_it_says) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; second += 5) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const auto shown = printable(text);
      EXPECT_EQ(printable(shown), shown);
      EXPECT_EQ(cells(shown), cells(text));
      EXPECT_EQ(cells(fit(text, 7)), 7u);
      for (const char letter : only_ascii(shown)) EXPECT_TRUE(letter >= ' ' && letter <= '~') << first << ' ' << second;
    }
}

TEST(TopText, of_numbers_is_short) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(0.31), "0.3");
  EXPECT_EQ(short_count(5), "5");
  EXPECT_EQ(short_count(5.5), "5.5");
  EXPECT_EQ(short_count(99.7), "100");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(999.9), "1.0k");
  EXPECT_EQ(short_count(1234), "1.2k");
  EXPECT_EQ(short_count(123'456), "123k");
  EXPECT_EQ(short_count(999'999), "1.0M");
  EXPECT_EQ(short_count(static_cast<double>(std::numeric_limits<uint64_t>::max())), "18E");
  EXPECT_EQ(short_count(1e30), ">999Y");
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(512), "512 B");
  EXPECT_EQ(short_bytes(3'400'000), "3.4 MB");
  EXPECT_EQ(short_bytes(999'999), "1.0 MB");
  EXPECT_EQ(short_bytes(1e30), ">1 RB");
}

TEST(TopText, of_times_has_their_unit) {
  EXPECT_EQ(short_time(0), "0 ns");
  EXPECT_EQ(short_time(250), "250 ns");
  EXPECT_EQ(short_time(512e3), "512 us");
  EXPECT_EQ(short_time(1024e3), "1.0 ms");
  EXPECT_EQ(short_time(4.19e9), "4.2 s");
  EXPECT_EQ(short_time(90 * 60e9), "1.5 h");
  EXPECT_EQ(short_age(33'900'000'000), "33s");
  EXPECT_EQ(short_age(753'000'000'000), "12m33s");
  EXPECT_EQ(short_age(7'500'000'000'000), "2h05m");
  EXPECT_EQ(short_age(1'050'000'000'000'000), "12d3h");
  EXPECT_EQ(short_age(std::numeric_limits<uint64_t>::max()), "213503d");
}

}  // namespace
}  // namespace tc::top
