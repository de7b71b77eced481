// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc top` can be told. The command checks it, and has it for manual pages and completion; the program that it runs reads it
// again.
//
// Thread: the main one.
#pragma once

#include "ifunc/asking.h"

namespace tc::command {

struct TopOptions : AskOptions {
  double interval_s = 2;
  std::string sort;
  bool once = false;

  void add_to(CLI::App& app);
};

}  // namespace tc::command
