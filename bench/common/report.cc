// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace tc::bench {

void put(Json& object, const std::string& key, const Summary& value) {
  object[key] = value.median;
  object[key + "_spread"] = {value.low, value.high};
}

std::string text_of(const Json& object) { return object.dump(2) + "\n"; }

std::string number(double value, const char* format) { return fmt::format(fmt::runtime(format), value); }

std::string quartiles(const Summary& value, const char* format, double unit) {
  return fmt::format("[{}, {}]", number(value.low / unit, format), number(value.high / unit, format));
}

std::string with_quartiles(const Summary& value, const char* format) {
  return number(value.median, format) + " " + quartiles(value, format);
}

Table::Table(std::string introduction, std::vector<Column> columns)
    : columns_(std::move(columns)), text_(std::move(introduction)) {
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.emplace_back(column.title);
  row(titles);
}

void Table::row(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
    const auto& [title, width, gap] = columns_[i];
    line.append(static_cast<size_t>(gap), ' ');
    line += width < 0 ? fmt::format("{:<{}}", cells[i], -width) : fmt::format("{:>{}}", cells[i], width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text_ += line + "\n";
}

namespace {

double quantile_of_sorted(const std::vector<double>& sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return quantile_of_sorted(values, share);
}

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {quantile_of_sorted(values, 0.5), quantile_of_sorted(values, 0.25), quantile_of_sorted(values, 0.75)};
}

}  // namespace tc::bench
