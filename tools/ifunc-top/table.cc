// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tc::top {

std::optional<size_t> Table::column(std::string_view name) const {
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name) return i;
  return {};
}

void Table::sort(size_t column, bool is_reversed) {
  const auto stands_before = [&](const Row& one, const Row& other) {
    const auto &left = one.cells[column], &right = other.cells[column];
    if (left.is_text) return is_reversed ? right.text < left.text : left.text < right.text;
    if (!left.number || !right.number) return left.number.has_value() && !right.number;
    return is_reversed ? *left.number < *right.number : *right.number < *left.number;
  };
  // By place where they are alike. (std::stable_sort of this compiler's library uses what is deprecated.)
  std::vector<size_t> places(rows.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::sort(places, [&](size_t one, size_t other) {
    if (stands_before(rows[one], rows[other])) return true;
    return !stands_before(rows[other], rows[one]) && one < other;
  });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const auto place : places) sorted.push_back(std::move(rows[place]));
  rows = std::move(sorted);
}

Layout::Layout(const Table& table, size_t width) : width_(width) {
  for (size_t i = 0; i < table.columns.size(); ++i)
    places_.push_back({.column = i, .side = table.columns[i].side, .width = table.columns[i].least});
  const auto used = [this] {
    return std::accumulate(places_.begin(), places_.end(), size_t{0},
                           [](size_t sum, const Place& place) { return sum + place.width + 1; });
  };
  const auto leaves = [&table](const Place& place) { return table.columns[place.column].leaves; };
  while (!places_.empty() && used() > width + 1) {
    const auto first = std::ranges::max_element(places_, {}, leaves);
    if (leaves(*first) == 0) break;
    places_.erase(first);
  }
  // Then texts are cut.
  auto over = std::max(used(), width + 1) - (width + 1);
  for (auto& place : places_) {
    if (place.side == Side::right) continue;
    const auto less = std::min(over, place.width - std::min<size_t>(place.width, 4));
    place.width -= less;
    over -= less;
  }
  // What is left goes to the columns whose texts need it.
  auto spare = width + 1 - std::min(width + 1, used());
  for (auto& place : places_) {
    size_t longest = place.width;
    for (const auto& row : table.rows)
      if (row.instead.empty() || place.column < row.instead_from)
        longest = std::max(longest, cells(row.cells[place.column].text));
    const auto more =
        std::min(spare, std::min(longest, std::max(place.width, table.columns[place.column].most)) - place.width);
    place.width += more;
    spare -= more;
  }
}

Line Layout::header(const Table& table, std::optional<size_t> sorted) const {
  Line line;
  for (const auto& place : places_) {
    if (!line.empty()) line.push_back({" ", Style::header});
    line.push_back({top::fit(table.columns[place.column].title, place.width, place.side),
                    sorted == place.column ? Style::sorted : Style::header});
  }
  line = top::fit(line, width_);
  for (auto& piece : line)
    if (piece.style == Style::plain) piece.style = Style::header;
  return line;
}

Line Layout::line(const Row& row, bool is_selected) const {
  Line line;
  size_t used = 0;
  for (const auto& place : places_) {
    if (!line.empty()) line.push_back({" "}), ++used;
    if (!row.instead.empty() && place.column >= row.instead_from) {
      line.push_back({top::fit(row.instead, width_ - std::min(width_, used)), Style::bad});
      break;
    }
    line.push_back({top::fit(row.cells[place.column].text, place.width, place.side), row.cells[place.column].style});
    used += place.width;
  }
  line = top::fit(line, width_);
  if (is_selected)
    for (auto& piece : line)
      if (piece.style != Style::bad) piece.style = Style::selected;
  return line;
}

Line fit(const Line& line, size_t width) {
  Line out;
  size_t used = 0;
  for (const auto& piece : line) {
    const auto wanted = cells(piece.text);
    const auto width_of_piece = std::min(wanted, width - used);
    if (width_of_piece == 0) continue;
    out.push_back({fit(piece.text, width_of_piece), piece.style});
    used += width_of_piece;
  }
  if (used < width) out.push_back({std::string(width - used, ' ')});
  return out;
}

std::string text_of(const Line& line) {
  std::string text;
  for (const auto& piece : line) text += piece.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace tc::top
