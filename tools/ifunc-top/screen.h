// SPDX-License-Identifier: Apache-2.0
//
// The terminal, by ncurses: lines in styles go out, keys come in. Everything that is decided is in view.h.
//
// Thread: one; ncurses has globals.
#pragma once

#include <memory>

#include "base/result.h"
#include "ifunc-top/view.h"

namespace tc::top {

// Whether the terminal of this process takes more than ASCII; setlocale() was called.
bool takes_utf8();

class Screen {
 public:
  // TC_ERR_UNSUPPORTED: the terminal cannot be drawn on, or $TERM names none.
  static Result<std::unique_ptr<Screen>> open();
  // The terminal is as it was.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Size size() const;
  // Asks the terminal for its size.
  void resize();
  void draw(const std::vector<Line>& lines);
  // Never waits; Key::none: there is none.
  int key();

  // The terminal as it was, until resume().
  void leave();
  void resume();

 private:
  Screen();

  bool has_colors_ = false, takes_utf8_;
};

}  // namespace tc::top
