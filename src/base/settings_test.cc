// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "base/file.h"

namespace tc {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr std::array<KnownSetting, 7> known = {{{"listen", "ADDRESS:PORT"},
                                                {"threads", "NUMBER"},
                                                {"tune", "on|off"},
                                                {"max-message", "BYTES"},
                                                {"allow-lib", "LIBRARY", true},
                                                {"cluster", "ADDRESS:PORT,..."},
                                                {"path", "DIRECTORY:..."}}};

class SettingsFile : public testing::Test {
 protected:
  Result<size_t> read(std::string_view text) {
    taken.clear();
    EXPECT_TRUE(write_file_atomically(path, as_bytes(std::string(text))));
    return read_settings(path, known, [this](std::string_view name, std::string_view value) -> Status {
      if (value == "bad") return fail(TC_ERR_INVALID, "{} is 'bad'", name);
      taken.emplace_back(name, value);
      return {};
    });
  }
  // Its faults, without the name of the file.
  std::string faults(std::string_view text) {
    const auto done = read(text);
    if (done) return "none";
    EXPECT_EQ(done.error().code, TC_ERR_INVALID);
    std::string words = done.error().message;
    for (size_t at = 0; (at = words.find(path + ", ")) != words.npos;) words.erase(at, path.size() + 2);
    return words;
  }

  const TemporaryDirectory directory = std::move(TemporaryDirectory::create().value());
  const std::string path = directory.file("node.toml");
  std::vector<std::pair<std::string, std::string>> taken;
};

TEST_F(SettingsFile, values_are_taken_in_the_order_of_the_file_as_a_command_line_has_them) {
  const auto count = read(
      "# a node\n\nthreads = 4\nlisten = \"127.0.0.1:0\"  # here\ntune = false\r\nmax-message = \"1M\"\n"
      "allow-lib = [\n  \"a\",\n  \"b\",\n]\ncluster = [\"h:1\", \"h:2\"]\npath = \".:/x\"\n");
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(*count, 7u);
  EXPECT_THAT(taken, ElementsAre(Pair("threads", "4"), Pair("listen", "127.0.0.1:0"), Pair("tune", "off"),
                                 Pair("max-message", "1M"), Pair("allow-lib", "a"), Pair("allow-lib", "b"),
                                 Pair("cluster", "h:1,h:2"), Pair("path", ".:/x")));
}

TEST_F(SettingsFile, one_value_of_a_list_and_a_plain_number_of_bytes_do) {
  ASSERT_TRUE(read("allow-lib = \"a\"\nmax-message = 0x1000\n"));
  EXPECT_THAT(taken, ElementsAre(Pair("allow-lib", "a"), Pair("max-message", "4096")));
  EXPECT_TRUE(read(""));
}

TEST_F(SettingsFile, every_fault_is_named_with_its_line) {
  EXPECT_EQ(
      faults("lisen = \"x\"\nthreads = \"4\"\ntune = \"off\"\nmax-message = true\nlisten = \"bad\"\nallow-lib = [\n"
             " \"a\",\n 1,\n \"bad\"]\ncluster = 7\n"),
      "line 1: there is no option 'lisen'; did you mean 'listen'?\n"
      "line 2: threads is \"4\" when it is a whole number, without quotes\n"
      "line 3: tune is \"off\" when it is true or false\n"
      "line 4: max-message is true when it is a number of bytes, or a string like \"64M\"\n"
      "line 5: listen is 'bad'\n"
      "line 8: allow-lib is 1 when it is a string, in quotes\n"
      "line 9: allow-lib is 'bad'\n"
      "line 10: cluster is 7 when it is a string, in quotes");
}

TEST_F(SettingsFile, a_string_without_quotes_is_said_to_need_them) {
  EXPECT_EQ(faults("listen = 127.0.0.1:0\nmax-message = 1M # much\ntune = off\nthreads = four\ntrust = any\n"),
            "line 1: strings stand in quotes: listen = \"127.0.0.1:0\"\n"
            "line 2: strings stand in quotes: max-message = \"1M\"\n"
            "line 3: tune is off when it is true or false\n"
            "line 4: threads is four when it is a whole number, without quotes\n"
            "line 5: there is no option 'trust'");
}

TEST_F(SettingsFile, what_is_no_toml_hides_no_other_fault) {
  EXPECT_EQ(faults("threads = 0.5\nwarm\nallow-lib = [\"a\"\nlisten = \"a\ntune = 1\n= 3\nthreads = 1\n"),
            "line 1: threads is a number with a fraction when it is a whole number, without quotes\n"
            "line 2: 'warm' when a line is `name = value`\n"
            "line 3, column 17: error while parsing array: encountered end-of-file\n"
            "line 4, column 12: error while parsing string: encountered end-of-file\n"
            "line 5: tune is 1 when it is true or false\n"
            "line 6: '= 3' when a line is `name = value`\n"
            "line 7: threads was set in line 1 already");
}

TEST_F(SettingsFile, tables_dates_and_lists_where_one_value_belongs_are_faults) {
  EXPECT_EQ(faults("listen = [\"a\"]\nthreads = 1979-05-27\n[limits]\nhops = 3\n"),
            "line 1: listen is a list when it is a string, in quotes\n"
            "line 2: threads is a date or time when it is a whole number, without quotes\n"
            "line 3: there is no option 'limits'");
  EXPECT_EQ(faults("threads.x = 1\n"), "line 1: threads is a table when it is a whole number, without quotes");
}

TEST_F(SettingsFile, a_file_that_is_not_there_is_not_found) {
  EXPECT_EQ(read_settings(path + "-nowhere", known, [](auto, auto) { return Status{}; }).error().code,
            TC_ERR_NOT_FOUND);
}

}  // namespace
}  // namespace tc
