// SPDX-License-Identifier: Apache-2.0
//
// What all benchmarks print: tables of medians beside their quartiles, and the same figures as one JSON object.
// The machine is noisy: a single figure is worth little, a ratio of medians from interleaved runs is what counts.
// Threads: any; an object is used by one thread.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tc::bench {

struct Summary {
  double median = 0;
  double low = 0;   // the first quartile
  double high = 0;  // the third
};

// The values need not be sorted. All zero when there are none.
Summary summarize(std::vector<double> values);

// The value below which this share of the values lies, between two of them where need be: 0.5 is the median. There is at
// least one value; they need not be sorted.
double quantile(std::vector<double> values, double share);

// Figures of interleaved runs: one for each key in each run.
template <class Key>
class Samples {
 public:
  void add(const Key& key, double value) { values_[key].push_back(value); }
  bool has(const Key& key) const { return values_.contains(key); }
  double last(const Key& key) const { return values_.at(key).back(); }
  // The keys, and the values run by run.
  const std::map<Key, std::vector<double>>& all() const noexcept { return values_; }
  // All zero when there are none.
  Summary of(const Key& key) const { return has(key) ? summarize(values_.at(key)) : Summary{}; }
  // The runs' own ratios: their median is what counts.
  Summary ratio(const Key& key, const Key& to) const {
    if (!has(key) || !has(to)) return {};
    std::vector<double> ratios;
    for (size_t run = 0; run < std::min(values_.at(key).size(), values_.at(to).size()); ++run)
      ratios.push_back(values_.at(key)[run] / values_.at(to)[run]);
    return summarize(std::move(ratios));
  }

 private:
  std::map<Key, std::vector<double>> values_;
};

using Json = nlohmann::ordered_json;

// What a benchmark prints: one of the two.
struct Report {
  std::string table;
  Json json;
};

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
