// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace tc::top {
namespace {

using command::Times;
namespace exit_codes = command::exit_codes;

constexpr int escape = 27;
constexpr auto left = Side::left, right = Side::right;

const std::vector<Column> node_columns{
    {"state", "STATE", left, 6, 6},         {"node", "NODE", left, 8, 32},      {"address", "ADDRESS", left, 14, 64, 6},
    {"up", "UP", right, 6, 6, 4},           {"calls", "CALL/s", right, 6, 6},   {"failures", "FAIL/s", right, 6, 6, 1},
    {"received", "RECV/s", right, 6, 6, 2}, {"sent", "SENT/s", right, 6, 6, 2}, {"links", "LINK", right, 4, 5, 5},
    {"codes", "CODE", right, 4, 5, 8},      {"died", "DIED", right, 4, 5, 7},   {"runs", "RUNS", left, 6, 32, 9}};
const std::vector<Column> ifunc_columns{
    {"name", "IFUNC", left, 12, 40},        {"calls", "CALL/s", right, 6, 6}, {"failures", "FAIL/s", right, 6, 6, 4},
    {"mean", "MEAN", right, 7, 8, 1},       {"p99", "P99", right, 7, 8, 2},   {"latency", "LATENCY", right, 7, 8, 5},
    {"latency99", "L-P99", right, 7, 8, 6}, {"busy", "BUSY", right, 5, 6, 3}, {"total", "TOTAL", right, 6, 6, 4}};
const std::vector<Column> link_columns{{"peer", "PEER", left, 12, 40},     {"transport", "BY", left, 7, 8, 3},
                                       {"calls", "CALL/s", right, 6, 6},   {"received", "RECV/s", right, 6, 6, 1},
                                       {"sent", "SENT/s", right, 6, 6, 1}, {"waiting", "WAITING", right, 7, 7, 2},
                                       {"total", "TOTAL", right, 6, 6, 4}, {"node", "NODE", left, 8, 32, 5}};
const std::vector<Column> number_columns{
    {"name", "NUMBER", left, 24, 40}, {"value", "VALUE", right, 20, 20}, {"rate", "PER SECOND", right, 10, 10}};

const std::vector<Column>& columns_of(View::Pane pane) {
  return pane == View::Pane::ifuncs ? ifunc_columns : pane == View::Pane::links ? link_columns : number_columns;
}

constexpr std::array<const char*, 3> pane_names{"ifuncs", "links", "numbers"};

// ---- Cells

Cell text_cell(std::string_view text) { return {.text = printable(text), .is_text = true}; }
Cell count_cell(uint64_t value) { return {.text = short_count(static_cast<double>(value)), .number = value}; }
Cell bytes_cell(uint64_t value) { return {.text = short_bytes(static_cast<double>(value)), .number = value}; }
Cell rate_cell(const Rate& rate, Style style = Style::plain) {
  if (!rate) return {.text = "-"};
  return {.text = short_count(*rate), .number = *rate, .style = *rate > 0 ? style : Style::plain};
}
Cell byte_rate_cell(const Rate& rate) {
  if (!rate) return {.text = "-"};
  return {.text = short_bytes(*rate), .number = *rate};
}
Cell mean_cell(const Durations& durations) {
  const auto mean = durations.mean_ns();
  if (!mean) return {.text = "-"};
  return {.text = short_time(*mean), .number = *mean};
}
Cell p99_cell(const Durations& durations) {
  const auto p99 = durations.p99();
  if (!p99) return {.text = "-"};
  const bool is_last = *p99 + 1 == Times::classes;
  const auto bound = static_cast<double>(Times::bound_ns(is_last ? *p99 - 1 : *p99));
  return {.text = (is_last ? ">" : "<") + short_time(bound), .number = *p99};
}
Cell busy_cell(const Rate& busy) {
  if (!busy) return {.text = "-"};
  return {.text = *busy < 9.995 ? fmt::format("{:.0f}%", *busy * 100) : short_count(*busy) + "x", .number = *busy};
}

// ---- Rows

std::string_view state_of(const Seen& node) {
  if (node.error)
    return node.exit_code == exit_codes::refused     ? "denied"
           : node.exit_code == exit_codes::unhealthy ? "silent"
                                                     : "gone";
  if (!node.now) return "...";
  return node.now->is_draining ? "drains" : "ok";
}

Style style_of(const Seen& node) {
  if (node.error) return Style::bad;
  if (!node.now) return Style::faint;
  return node.now->is_draining ? Style::warning : Style::good;
}

// The error without the address, which the line has already.
std::string_view reason(const Seen& node) {
  std::string_view text = *node.error;
  for (const auto& prefix : {"connecting to " + node.address + ": ", "the peer at " + node.address + ": "})
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

Row node_row(const Seen& node, const NodeRates& rates) {
  const auto state = state_of(node);
  Row row;
  row.cells = {text_cell(state), text_cell(node.now ? node.now->name : "-"), text_cell(node.address)};
  row.cells[0].style = style_of(node);
  row.instead_from = row.cells.size();
  if (node.error) {
    row.instead = printable(reason(node));
    if (node.again_in_s) row.instead = fmt::format("{:.0f} s: {}", std::max(0.0, *node.again_in_s), row.instead);
    return row;
  }
  row.cells.push_back(node.now ? Cell{.text = short_age(node.now->uptime_ns), .number = node.now->uptime_ns}
                               : Cell{.text = "-"});
  for (auto& cell : {rate_cell(rates.calls), rate_cell(rates.failures, Style::bad), byte_rate_cell(rates.received),
                     byte_rate_cell(rates.sent), count_cell(rates.links), count_cell(rates.codes),
                     count_cell(rates.cell_deaths), text_cell(node.now ? node.now->running : "")})
    row.cells.push_back(cell);
  return row;
}

Row sum_row(const std::vector<Seen>& nodes, const std::vector<NodeRates>& rates) {
  NodeRates sum;
  for (const auto& one : rates) {
    sum.calls = sum_of(sum.calls, one.calls);
    sum.failures = sum_of(sum.failures, one.failures);
    sum.received = sum_of(sum.received, one.received);
    sum.sent = sum_of(sum.sent, one.sent);
    sum.links += one.links;
    sum.codes += one.codes;
    sum.cell_deaths += one.cell_deaths;
  }
  const Seen all{.address = "", .before = {}, .now = Told{}, .error = {}, .exit_code = 0, .again_in_s = {}, .looks = 0};
  auto row = node_row(all, sum);
  row.cells[0] = text_cell("");
  row.cells[1] = text_cell(fmt::format("all {}", nodes.size()));
  row.cells[3] = {};
  return row;
}

Row ifunc_row(const IfuncRates& one) {
  return {.cells = {text_cell(one.name), rate_cell(one.calls_per_s), rate_cell(one.failures_per_s, Style::bad),
                    mean_cell(one.run), p99_cell(one.run), mean_cell(one.latency), p99_cell(one.latency),
                    busy_cell(one.busy()), count_cell(one.calls)}};
}

Row link_row(const LinkRates& one) {
  return {.cells = {text_cell(one.peer), text_cell(one.transport), rate_cell(one.calls_per_s),
                    byte_rate_cell(one.received_per_s), byte_rate_cell(one.sent_per_s), bytes_cell(one.waiting_bytes),
                    count_cell(one.calls), text_cell(one.node)}};
}

Row number_row(const NumberRates& one) {
  return {.cells = {
              text_cell(one.name), {.text = fmt::format("{}", one.value), .number = one.value}, rate_cell(one.per_s)}};
}

// The part of `count` rows that `height` lines show, with row `selected` among them.
size_t first_shown(size_t count, size_t height, size_t selected) {
  if (count <= height || selected < height / 2) return 0;
  return std::min(selected - height / 2, count - height);
}

// Two pieces of text at the sides of a line, with one between them.
Line spread(size_t width, const std::string& at_left, const std::string& between, const std::string& at_right,
            Style style) {
  const auto used = cells(at_left) + cells(between) + cells(at_right);
  const auto gaps = width > used ? width - used : 2;
  return fit(
      Line{{at_left + std::string(gaps / 2, ' ') + between + std::string(gaps - gaps / 2, ' ') + at_right, style}},
      width);
}

}  // namespace

View::View(double interval_s, const std::string& sort) : interval_s_(interval_s) {
  orders_ = {{.column = "calls"}, {.column = "calls"}, {.column = ""}};
  for (size_t i = 0; i < orders_.size(); ++i)
    if (Table{.columns = columns_of(static_cast<Pane>(i)), .rows = {}}.column(sort)) orders_[i].column = sort;
}

void View::show(std::vector<Seen> nodes) {
  nodes_ = std::move(nodes);
  rates_.clear();
  for (const auto& node : nodes_)
    rates_.push_back(node.now && !node.error ? rates_between(node.before, *node.now) : NodeRates{});
}

int View::exit_code() const {
  int worst = exit_codes::ok;
  for (const auto& node : nodes_) worst = std::max(worst, node.exit_code);
  return worst;
}

std::optional<size_t> View::selected_node() const {
  if (!has_sum()) return nodes_.empty() ? std::nullopt : std::optional<size_t>(0);
  return selected_ == 0 ? std::nullopt : std::optional(selected_ - 1);
}

// ---- Keys

bool View::press(int key) {
  if (std::exchange(has_help_, false)) return key != 'q' && key != 3;
  const auto count = rows();
  switch (key) {
    case 'q':
    case escape:
    case 3: return false;  // ^C, where the terminal sends it as a character
    case 'h':
    case '?': has_help_ = true; break;
    case Key::up: selected_ = std::max<size_t>(selected_, 1) - 1, scrolled_ = 0; break;
    case Key::down: selected_ = std::min(selected_ + 1, std::max<size_t>(count, 1) - 1), scrolled_ = 0; break;
    case Key::home: selected_ = 0, scrolled_ = 0; break;
    case Key::end: selected_ = std::max<size_t>(count, 1) - 1, scrolled_ = 0; break;
    case Key::page_up: scroll(-static_cast<int>(pane_height_)); break;
    case Key::page_down: scroll(static_cast<int>(pane_height_)); break;
    case '\t': pane_ = static_cast<Pane>((static_cast<size_t>(pane_) + 1) % pane_names.size()), scrolled_ = 0; break;
    case '1':
    case '2':
    case '3': pane_ = static_cast<Pane>(key - '1'), scrolled_ = 0; break;
    case '<':
    case Key::left: press_order(-1); break;
    case '>':
    case Key::right: press_order(1); break;
    case 'r': order().is_reversed = !order().is_reversed; break;
    case ' ':
    case 'p': is_paused_ = !is_paused_; break;
    case '+': press_interval(1); break;
    case '-': press_interval(-1); break;
    default: break;
  }
  return true;
}

void View::press_order(int step) {
  const auto& columns = columns_of(pane_);
  const auto count = static_cast<int>(columns.size());
  const auto now = Table{.columns = columns, .rows = {}}.column(order().column);
  const auto next = now ? (static_cast<int>(*now) + step + count) % count : step > 0 ? 0 : count - 1;
  order() = {.column = columns[static_cast<size_t>(next)].name};
}

void View::press_interval(int step) {
  static constexpr std::array steps{0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0};
  if (step > 0) {
    const auto* const next = std::ranges::upper_bound(steps, interval_s_);
    if (next != steps.end()) interval_s_ = *next;
  } else {
    const auto* const next = std::ranges::lower_bound(steps, interval_s_);
    if (next != steps.begin()) interval_s_ = *(next - 1);
  }
}

void View::scroll(int rows) {
  const auto count = pane_table(pane_, selected_node()).rows.size();
  const auto most = count > pane_height_ ? count - pane_height_ : 0;
  const auto wanted = static_cast<int64_t>(scrolled_) + rows;
  scrolled_ = std::min(static_cast<size_t>(std::max<int64_t>(wanted, 0)), most);
}

// ---- Lines

Line View::title(size_t width, std::string_view time) const {
  size_t lost = 0, awaited = 0;
  for (const auto& node : nodes_) {
    if (node.error) ++lost;
    if (!node.error && !node.now) ++awaited;
  }
  auto words = fmt::format("ifunc top: {} node{}", nodes_.size(), nodes_.size() == 1 ? "" : "s");
  if (lost != 0) words += fmt::format(", {} without an answer", lost);
  if (awaited != 0) words += fmt::format(", {} not asked yet", awaited);
  return spread(width, words, fmt::format("{}every {} s", is_paused_ ? "PAUSED, " : "", interval_s_), std::string(time),
                Style::title);
}

Line View::pane_title(size_t width) const {
  const auto node = selected_node();
  std::string words = fmt::format("{} of all nodes", pane_names[static_cast<size_t>(pane_)]);
  if (node) {
    const auto& seen = nodes_[*node];
    words = fmt::format("{} of {}", pane_names[static_cast<size_t>(pane_)],
                        printable(seen.now ? seen.now->name : seen.address));
    if (!seen.error && seen.now && !seen.now->running.empty())
      words += fmt::format(", runs {}", printable(seen.now->running));
  }
  std::string panes;
  for (size_t i = 0; i < pane_names.size(); ++i)
    panes += fmt::format(fmt::runtime(static_cast<size_t>(pane_) == i ? "[{} {}]" : " {} {} "), i + 1, pane_names[i]);
  const auto room = width > panes.size() + 1 ? width - panes.size() - 1 : width;
  return spread(width, cells(words) > room ? fit(words, room) : words, "", panes, Style::title);
}

Table View::node_table() const {
  Table table{.columns = node_columns, .rows = {}};
  if (has_sum()) table.rows.push_back(sum_row(nodes_, rates_));
  // An address that is cut is none; a column leaves for it instead. (This is the longest of IPv4.)
  auto& address = table.columns[*table.column("address")];
  for (size_t i = 0; i < nodes_.size(); ++i) {
    table.rows.push_back(node_row(nodes_[i], rates_[i]));
    address.least = std::max(address.least, std::min<size_t>(cells(nodes_[i].address), 21));
  }
  return table;
}

Table View::pane_table(Pane pane, std::optional<size_t> node) const {
  Table table{.columns = columns_of(pane), .rows = {}};
  const auto shown = node ? std::span(rates_).subspan(*node, 1) : std::span(rates_);
  if (pane == Pane::ifuncs)
    for (const auto& one : sum_of_ifuncs(shown)) table.rows.push_back(ifunc_row(one));
  if (pane == Pane::links)
    for (const auto& rates : shown)
      for (const auto& one : rates.links_by_peer) table.rows.push_back(link_row(one));
  if (pane == Pane::numbers)
    for (const auto& one : sum_of_numbers(shown)) table.rows.push_back(number_row(one));
  const auto& order = orders_[static_cast<size_t>(pane)];
  if (const auto column = table.column(order.column)) table.sort(*column, order.is_reversed);
  return table;
}

void View::append_nodes(std::vector<Line>& lines, Size size) const {
  const auto table = node_table();
  const Layout layout(table, size.width);
  lines.push_back(layout.header(table, {}));
  const auto first = first_shown(table.rows.size(), size.height - 1, selected_);
  for (size_t i = first; i < std::min(table.rows.size(), first + size.height - 1); ++i)
    lines.push_back(layout.line(table.rows[i], has_sum() && i == selected_));
}

void View::append_pane(std::vector<Line>& lines, Size size) {
  lines.push_back(pane_title(size.width));
  const auto table = pane_table(pane_, selected_node());
  const Layout layout(table, size.width);
  if (size.height > 1) lines.push_back(layout.header(table, table.column(order().column)));
  pane_height_ = size.height > 3 ? size.height - 2 : 1;
  scrolled_ = std::min(scrolled_, table.rows.size() > pane_height_ ? table.rows.size() - pane_height_ : 0);
  for (size_t i = scrolled_; i < table.rows.size() && i < scrolled_ + pane_height_; ++i)
    lines.push_back(layout.line(table.rows[i], false));
  if (table.rows.empty()) lines.push_back(fit(Line{{"none, or not told", Style::faint}}, size.width));
}

std::vector<Line> View::help(Size size) const {
  static constexpr std::array words{"ifunc top: keys",
                                    "",
                                    "up down home end    select a node, or all of them",
                                    "1 2 3 tab           ifuncs, links, numbers",
                                    "page-up page-down   scroll them",
                                    "< > left right      sort by another column",
                                    "r                   reverse the order",
                                    "space p             pause, and go on",
                                    "+ -                 look less often, more often",
                                    "q esc ^C            quit",
                                    "",
                                    "MEAN and P99 are how long code ran; LATENCY and L-P99 have the wait",
                                    "for a thread or a cell, too. They are of the last interval, or of all",
                                    "calls where none was measured in it. BUSY: 100% is one thread.",
                                    "",
                                    "any key goes back"};
  std::vector<Line> lines;
  for (const auto* const line : words)
    if (lines.size() < size.height)
      lines.push_back(fit(Line{{line, lines.empty() ? Style::title : Style::plain}}, size.width));
  return lines;
}

std::vector<Line> View::lines(Size size, std::string_view time) {
  std::vector<Line> lines;
  selected_ = std::min(selected_, std::max<size_t>(rows(), 1) - 1);
  if (has_help_) {
    lines = help(size);
  } else {
    lines.push_back(title(size.width, time));
    // Nodes have a third of the screen where there are many; what they leave is the pane's.
    const auto third = std::max<size_t>(size.height / 3, 2);
    append_nodes(lines, {size.width, std::min(rows() + 1, third)});
    const size_t keys = size.height >= 12 ? 1 : 0;
    if (size.height > lines.size() + keys) append_pane(lines, {size.width, size.height - lines.size() - keys});
    lines.resize(std::min(lines.size(), size.height - std::min(keys, size.height)));
    while (lines.size() + keys < size.height) lines.push_back(fit(Line{}, size.width));
    if (keys != 0)
      lines.push_back(
          fit(Line{{"q quit  h help  arrows node  tab view  < > sort  r reverse  p pause  +- interval", Style::faint}},
              size.width));
  }
  lines.resize(size.height, fit(Line{}, size.width));
  return lines;
}

std::vector<Line> View::everything(size_t width, std::string_view time) const {
  std::vector<Line> lines{title(width, time)};
  append_nodes(lines, {width, rows() + 1});
  for (const auto pane : {Pane::ifuncs, Pane::links}) {
    const auto table = pane_table(pane, {});
    if (table.rows.empty()) continue;
    const Layout layout(table, width);
    lines.emplace_back();
    lines.push_back(layout.header(table, table.column(orders_[static_cast<size_t>(pane)].column)));
    for (const auto& row : table.rows) lines.push_back(layout.line(row, false));
  }
  return lines;
}

}  // namespace tc::top
