// SPDX-License-Identifier: Apache-2.0
#include "node/cells/cell_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/no_memory.h"
#include "base/quiet_thread.h"

namespace tc::node {

namespace {

// Nothing may leave the thread.
Result<std::unique_ptr<cell::CellProcess>> start_cell(const cell::CellProcess::Options& options) noexcept try {
  return cell::CellProcess::start(options);
} catch (const std::bad_alloc&) {
  return fail(error_in_any_case(TC_ERR_NO_MEMORY, "no memory"));
}

}  // namespace

CellKeeper::~CellKeeper() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  tell();
  thread_.join();
  if (destroyer_.joinable()) destroyer_.join();
}

Status CellKeeper::start() {
  changed_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!changed_) return fail(TC_ERR_IO, "cannot make an eventfd: {}", system_words(errno));
  auto thread = quiet_thread([this] { run(); });
  if (!thread) return context("cannot start a thread for cells", std::move(thread).error());
  thread_ = std::move(*thread);
  return {};
}

void CellKeeper::order(cell::CellProcess::Options options) {
  {
    const std::scoped_lock lock(mutex_);
    ordered_ = std::move(options);
  }
  tell();
}

std::optional<Result<std::unique_ptr<cell::CellProcess>>> CellKeeper::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(made_, std::nullopt);
}

void CellKeeper::dispose(std::unique_ptr<Cell> cell) {
  {
    const std::scoped_lock lock(mutex_);
    disposed_.push_back(std::move(cell));
  }
  tell();
}

void CellKeeper::watch(std::vector<int> descriptors) {
  {
    const std::scoped_lock lock(mutex_);
    watched_ = std::move(descriptors);
  }
  tell();
}

void CellKeeper::tell() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(changed_.get(), &one, sizeof one);
}

// ---- The keeper's thread

void CellKeeper::run() {
  while (true) {
    std::vector<pollfd> polled{{changed_.get(), POLLIN, 0}};
    std::optional<cell::CellProcess::Options> order;
    bool begins_to_destroy = false;
    {
      const std::scoped_lock lock(mutex_);
      if (ends_) return;
      for (const int one : watched_) polled.push_back({one, POLLIN, 0});
      begins_to_destroy = !is_destroying_ && !disposed_.empty();
      is_destroying_ |= begins_to_destroy;
      if (!is_destroying_) order = std::exchange(ordered_, std::nullopt);
    }
    if (begins_to_destroy) start_destroying();
    if (order) {
      auto made = start_cell(*order);
      {
        const std::scoped_lock lock(mutex_);
        made_ = std::move(made);
      }
      has_news_ = true;
      wake_();
      continue;
    }
    if (::poll(polled.data(), polled.size(), -1) <= 0) continue;
    uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(changed_.get(), &count, sizeof count);
    bool rings = false;
    for (size_t i = 1; i < polled.size(); ++i) rings |= polled[i].revents != 0;
    if (!rings) continue;
    {
      const std::scoped_lock lock(mutex_);
      watched_.clear();  // until the node has looked: watch()
    }
    has_news_ = true;
    wake_();
  }
}

// Where there is no thread to be had, they are destroyed here.
void CellKeeper::start_destroying() {
  if (destroyer_.joinable()) destroyer_.join();  // it has ended
  auto thread = quiet_thread([this] { destroy(); });
  if (thread)
    destroyer_ = std::move(*thread);
  else
    destroy();
}

void CellKeeper::destroy() {
  std::vector<std::unique_ptr<Cell>> cells;
  {
    const std::scoped_lock lock(mutex_);
    cells.swap(disposed_);
  }
  cells.clear();
  {
    const std::scoped_lock lock(mutex_);
    is_destroying_ = false;
  }
  tell();
}

}  // namespace tc::node
