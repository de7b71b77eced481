// SPDX-License-Identifier: Apache-2.0
//
// A thread that starts cells and waits for what they ring. The kernel ends a cell together with the thread that started it, and
// to start one takes a moment: so this is no thread that polls the node. Cells that have ended are destroyed on another one.
//
// Thread: the node's, but for what says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "cell/cell_process.h"
#include "node/cells/cell.h"

namespace tc::node {

class CellKeeper {
 public:
  // `wake` is called from the keeper's thread when there is news.
  explicit CellKeeper(std::function<void()> wake) noexcept : wake_(std::move(wake)) {}
  ~CellKeeper();
  CellKeeper(const CellKeeper&) = delete;
  CellKeeper& operator=(const CellKeeper&) = delete;

  // TC_ERR_IO: there is no thread to be had.
  Status start();
  // Starts a cell. One at a time.
  void order(cell::CellProcess::Options options);
  // The cell that was ordered, once; nothing: it is not there yet.
  std::optional<Result<std::unique_ptr<cell::CellProcess>>> take();

  // Destroys a cell that has ended and that no call uses any more, on a thread of its own: that waits until its code is no
  // longer compiled. The next cell starts after it. At the latest it is done when this is destroyed.
  void dispose(std::unique_ptr<Cell> cell);

  // From now on these descriptors are watched, once: CellProcess::descriptor() of each cell.
  void watch(std::vector<int> descriptors);
  // Was one of them readable, or a cell started, since this was called last?
  bool take_news() noexcept { return has_news_.load(std::memory_order_relaxed) && has_news_.exchange(false); }

 private:
  void run();
  void start_destroying();
  void destroy();
  void tell();

  const std::function<void()> wake_;
  std::atomic<bool> has_news_{false};

  std::mutex mutex_;  // of what follows
  std::optional<cell::CellProcess::Options> ordered_;
  std::optional<Result<std::unique_ptr<cell::CellProcess>>> made_;
  std::vector<int> watched_;
  std::vector<std::unique_ptr<Cell>> disposed_;
  bool is_destroying_ = false;
  bool ends_ = false;

  Fd changed_;  // an eventfd: what is watched or ordered has changed
  std::thread thread_;
  std::thread destroyer_;  // started and joined by thread_, and joined last when this is destroyed
};

}  // namespace tc::node
