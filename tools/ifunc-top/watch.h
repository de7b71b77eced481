// SPDX-License-Identifier: Apache-2.0
//
// Looks at nodes again and again. Each node has a thread and an Asker of its own, because connecting and asking wait: a node
// that does not answer holds up neither the others nor the keyboard.
//
// Threads: the one that made it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "ifunc-top/view.h"

namespace tc::top {

class Watch {
 public:
  // Block the signals that other threads shall take before it is made. TC_ERR_IO: the system has no more descriptors.
  static Result<Watch> start(std::vector<std::pair<std::string, command::Asker>> nodes, double interval_s);
  Watch(Watch&&) noexcept = default;
  ~Watch();

  std::vector<Seen> seen() const;
  // Becomes readable when there was a look since the last take().
  int fd() const noexcept;
  void take();
  void set_interval(double interval_s);
  // Until each node was looked at so often.
  void wait_for_looks(uint64_t count);

  // Closes the connections. False: a thread still waits for its node, for up to the timeout of a question; the process has to
  // end without it.
  bool finish();

 private:
  struct Shared;
  explicit Watch(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void run(const std::shared_ptr<Shared>& shared, size_t index, command::Asker asker);

  std::shared_ptr<Shared> shared_;
};

}  // namespace tc::top
