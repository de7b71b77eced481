// SPDX-License-Identifier: Apache-2.0
//
// Shows how far a benchmark is on stderr: a bar with the time left on a terminal, else a line every few seconds.
// Thread: the one that measures.
#pragma once

#include <cstdint>
#include <string>

namespace tc::bench {

class Progress {
 public:
  explicit Progress(std::string bench);  // its name
  ~Progress();                           // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `done` of `total`, in any unit that takes about the same time; `what` is going on.
  void show(double done, double total, const std::string& what);

 private:
  std::string bench_;
  bool terminal_;
  uint64_t started_ns_;
  uint64_t shown_ns_ = 0;
};

}  // namespace tc::bench
