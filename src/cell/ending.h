// SPDX-License-Identifier: Apache-2.0
//
// How a cell ended, as far as the node can know: what the kernel reports, and what the cell's signal handler wrote.
//
// Threads: any; plain values.
#pragma once

#include <optional>
#include <string>

#include "cell/crash_record.h"

namespace tc::cell {

struct Ending {
  enum class Kind : uint8_t {
    left,            // the node told it to
    killed,          // by the node, for the reason in `why`
    crashed,         // by a signal
    exited,          // its code has ended the process
    broke_protocol,  // and was killed: `why` says which rule
    not_started,     // `why`
  };
  Kind kind = Kind::left;
  int signal = 0;
  int exit_code = 0;
  std::optional<Crash> crash;  // of a signal, where the handler could write it
  std::string why;

  // "was ended by signal 11 (Segmentation fault) at address 0x8, in code at 0x7f12a0000123".
  std::string text() const;
};

// "openat" or "system call 257": those that code is likely to try have names.
std::string system_call_name(int number);

}  // namespace tc::cell
