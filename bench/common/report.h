// SPDX-License-Identifier: Apache-2.0
//
// What all benchmarks print: tables of medians beside their quartiles, and the same figures as one JSON object.
// Threads: any; an object is used by one thread.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>
#include <vector>

#include "common/statistics.h"

namespace tc::bench {

using Json = nlohmann::ordered_json;

// In JSON a median stands beside its spread: KEY, and the quartiles as KEY_spread.
void put(Json& object, const std::string& key, const Summary& value);
// The object as text with a line feed at its end.
std::string text_of(const Json& object);

// "1.53", "[1.50, 1.61]" and "1.53 [1.50, 1.61]": one number by `format` each, in units of `unit`.
std::string number(double value, const char* format);
std::string quartiles(const Summary& value, const char* format, double unit = 1);
std::string with_quartiles(const Summary& value, const char* format);

// Rows of text in columns of a fixed width. Spaces at a row's end are left out.
class Table {
 public:
  struct Column {
    const char* title;
    int width;    // negative: the text begins at the left
    int gap = 0;  // spaces before it, besides
  };
  // `introduction` stands above the titles.
  Table(std::string introduction, std::vector<Column> columns);
  // Adds a row; it may have fewer cells than there are columns.
  void row(const std::vector<std::string>& cells);
  // Adds text as it is, between two rows or behind the last.
  void text(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  std::vector<Column> columns_;
  std::string text_;
};

}  // namespace tc::bench
