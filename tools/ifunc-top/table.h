// SPDX-License-Identifier: Apache-2.0
//
// A table as a terminal shows it: columns that fit its width, and rows in an order.
//
// Threads: any; plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ifunc-top/text.h"

namespace tc::top {

// What a piece of a line is; the screen has colours for it.
enum class Style { plain, faint, title, header, sorted, selected, good, warning, bad };

struct Piece {
  std::string text;  // printable
  Style style = Style::plain;
};
using Line = std::vector<Piece>;

struct Column {
  const char* name;  // as --sort has it
  const char* title;
  Side side;
  size_t least, most;  // how wide it is
  int leaves = 0;      // the greatest leaves first where there is no room for all; 0 stays
};

struct Cell {
  std::string text;
  // What rows are sorted by; long double has each uint64_t. None in a column of numbers: there is no value, and it comes last.
  std::optional<long double> number = {};
  bool is_text = false;  // then they are sorted by `text`
  Style style = Style::plain;
};

struct Row {
  std::vector<Cell> cells;
  // Instead of the cells from `instead_from` on.
  std::string instead = {};
  size_t instead_from = 0;
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;

  // The place of the column; none: there is none of that name.
  std::optional<size_t> column(std::string_view name) const;
  // Texts ascend, numbers descend; `is_reversed`: the other way round, but what has no value stays last. Rows that are alike stay
  // in the order that they have.
  void sort(size_t column, bool is_reversed);
};

// A table's columns within `width` cells.
class Layout {
 public:
  Layout(const Table& table, size_t width);

  // `sorted`: the column that is marked.
  Line header(const Table& table, std::optional<size_t> sorted) const;
  Line line(const Row& row, bool is_selected) const;

 private:
  struct Place {
    size_t column;
    Side side;
    size_t width;
  };
  size_t width_;
  std::vector<Place> places_;
};

// The same line, cut or padded to `width`.
Line fit(const Line& line, size_t width);
std::string text_of(const Line& line);

}  // namespace tc::top
