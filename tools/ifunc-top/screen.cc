// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/screen.h"

// Wide characters, and no macros with names such as `timeout`.
#define NCURSES_NOMACROS
#include <langinfo.h>
#include <ncurses.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

// term.h defines them.
#undef lines
#undef columns

namespace tc::top {
namespace {

enum Pair : short { red = 1, green, yellow, cyan };

attr_t attribute_of(Style style, bool has_colors) {
  const auto color = [has_colors](short pair, attr_t otherwise) {
    return has_colors ? static_cast<attr_t>(COLOR_PAIR(pair)) : otherwise;
  };
  switch (style) {
    case Style::plain: return A_NORMAL;
    case Style::faint: return A_DIM;
    case Style::title: return A_BOLD;
    case Style::header: return A_REVERSE;
    case Style::sorted: return A_REVERSE | A_BOLD | A_UNDERLINE;
    case Style::selected: return A_REVERSE | color(cyan, A_NORMAL);
    case Style::good: return color(green, A_NORMAL);
    case Style::warning: return color(yellow, A_BOLD);
    case Style::bad: return color(red, A_BOLD);
  }
  return A_NORMAL;
}

int key_of(int key) {
  switch (key) {
    case ERR: return Key::none;
    case KEY_UP: return Key::up;
    case KEY_DOWN: return Key::down;
    case KEY_LEFT: return Key::left;
    case KEY_RIGHT: return Key::right;
    case KEY_PPAGE: return Key::page_up;
    case KEY_NPAGE: return Key::page_down;
    case KEY_HOME: return Key::home;
    case KEY_END: return Key::end;
    default: return key < KEY_MIN ? key : Key::other;
  }
}

// By https://no-color.org: any value but the empty one.
bool wants_colors() {
  const char* const no = std::getenv("NO_COLOR");
  return no == nullptr || *no == '\0';
}

Status check_terminal() {
  const char* const term = std::getenv("TERM");
  const std::string name = term != nullptr ? term : "";
  int error = 0;
  if (name.empty() || setupterm(name.c_str(), STDOUT_FILENO, &error) != OK)
    return fail(TC_ERR_UNSUPPORTED, "TERM is '{}', which is no terminal that is known here", name);
  // It must let the cursor be moved.
  const char* const move = tigetstr("cup");
  if (move == nullptr || move == reinterpret_cast<const char*>(-1))
    return fail(TC_ERR_UNSUPPORTED, "TERM is '{}', a terminal that cannot be drawn on", name);
  return {};
}

}  // namespace

bool takes_utf8() { return std::string_view(nl_langinfo(CODESET)) == "UTF-8"; }

Result<std::unique_ptr<Screen>> Screen::open() {
  TC_CHECK(check_terminal());
  set_escdelay(25);  // milliseconds: what follows ESC later than that is another key
  if (newterm(nullptr, stdout, stdin) == nullptr)
    return fail(TC_ERR_UNSUPPORTED, "TERM is '{}', a terminal that cannot be drawn on", std::getenv("TERM"));
  return std::unique_ptr<Screen>(new Screen);
}

Screen::Screen() : takes_utf8_(top::takes_utf8()) {
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  has_colors_ = wants_colors() && has_colors() && start_color() == OK;
  if (!has_colors_) return;
  const bool has_default = use_default_colors() == OK;
  const short background = has_default ? -1 : COLOR_BLACK;
  init_pair(red, COLOR_RED, background);
  init_pair(green, COLOR_GREEN, background);
  init_pair(yellow, COLOR_YELLOW, background);
  init_pair(cyan, COLOR_CYAN, background);
}

Screen::~Screen() { endwin(); }

Size Screen::size() const {
  return {.width = static_cast<size_t>(getmaxx(stdscr)), .height = static_cast<size_t>(getmaxy(stdscr))};
}

void Screen::resize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row != 0 && size.ws_col != 0)
    resizeterm(size.ws_row, size.ws_col);
  clearok(curscr, TRUE);
}

void Screen::draw(const std::vector<Line>& lines) {
  erase();
  for (size_t y = 0; y < lines.size(); ++y) {
    move(static_cast<int>(y), 0);
    for (const auto& piece : lines[y]) {
      // Once more, whatever was done to the text on its way here.
      const auto text = takes_utf8_ ? printable(piece.text) : only_ascii(printable(piece.text));
      attrset(static_cast<int>(attribute_of(piece.style, has_colors_)));
      addstr(text.c_str());
    }
  }
  attrset(A_NORMAL);
  refresh();
}

int Screen::key() { return key_of(getch()); }

void Screen::leave() { endwin(); }

void Screen::resume() {
  reset_prog_mode();
  resize();
  refresh();
}

}  // namespace tc::top
