// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc top` shows, without a terminal: looks at nodes become lines of text in styles, and keys change what is shown.
//
//     ifunc top: 3 nodes, 1 without an answer       every 2 s       12:03:01Z     title
//     STATE  NODE  ADDRESS         UP  CALL/s ...                                 nodes: all of them as one, then each
//     ifuncs of all nodes                          [1 ifuncs] 2 links 3 numbers   what the pane shows
//     IFUNC        CALL/s ...                                                     the pane
//     q quit  h help ...                                                          keys
//
// Threads: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ifunc-top/rates.h"
#include "ifunc-top/table.h"

namespace tc::top {

// A node as it was seen last.
struct Seen {
  std::string address;
  std::optional<Told> before, now;   // `now` stays where it is lost afterwards; before: none, or it was lost in between
  std::optional<std::string> error;  // why the last look failed
  int exit_code = 0;                 // of the last look
  std::optional<double> again_in_s;  // when it is looked at again
  uint64_t looks = 0;                // that ended, well or not
};

// Keys that are no character.
struct Key {
  enum : int { none = -1, up = 0x110000, down, left, right, page_up, page_down, home, end, other };
};

struct Size {
  size_t width, height;
};

class View {
 public:
  enum class Pane { ifuncs, links, numbers };
  static constexpr double least_interval_s = 0.1, most_interval_s = 3600;

  // `sort`: the name of a column; empty: each pane's first choice.
  View(double interval_s, const std::string& sort);

  void show(std::vector<Seen> nodes);
  // False: the user wants to leave.
  bool press(int key);

  bool is_paused() const noexcept { return is_paused_; }
  double interval_s() const noexcept { return interval_s_; }
  // The greatest exit code of the nodes.
  int exit_code() const;

  // Exactly `size.height` lines of `size.width` cells. `time` is the time of day.
  std::vector<Line> lines(Size size, std::string_view time);
  // All there is of nodes, ifuncs and links, for a file or a pipe.
  std::vector<Line> everything(size_t width, std::string_view time) const;

 private:
  struct Order {
    std::string column;
    bool is_reversed = false;
  };

  bool has_sum() const noexcept { return nodes_.size() > 1; }
  size_t rows() const noexcept { return nodes_.size() + (has_sum() ? 1 : 0); }
  // None: all of them.
  std::optional<size_t> selected_node() const;
  Order& order() { return orders_[static_cast<size_t>(pane_)]; }

  void press_order(int step);
  void press_interval(int step);
  void scroll(int rows);

  Line title(size_t width, std::string_view time) const;
  Line pane_title(size_t width) const;
  Table node_table() const;
  Table pane_table(Pane pane, std::optional<size_t> node) const;
  void append_nodes(std::vector<Line>& lines, Size size) const;
  void append_pane(std::vector<Line>& lines, Size size);
  std::vector<Line> help(Size size) const;

  std::vector<Seen> nodes_;
  std::vector<NodeRates> rates_;  // of each node; empty of those that do not answer
  size_t selected_ = 0;           // row among nodes
  Pane pane_ = Pane::ifuncs;
  std::vector<Order> orders_;  // of each pane
  size_t scrolled_ = 0;        // rows of the pane above its first one
  size_t pane_height_ = 1;     // when it was drawn last
  double interval_s_;
  bool is_paused_ = false, has_help_ = false;
};

}  // namespace tc::top
