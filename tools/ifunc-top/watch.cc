// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/quiet_thread.h"

namespace tc::top {
namespace {

using Clock = std::chrono::steady_clock;

// A node that does not answer is tried again after this long, at first after an interval.
constexpr double longest_pause_s = 30;
// Threads that are not inside a question end at once; on a machine with much to do they may need to be run first.
constexpr auto patience = std::chrono::milliseconds(300);

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

struct Watch::Shared {
  struct Place {
    Seen seen;
    Clock::time_point looked_at;
    double pause_s = 0;  // 0: the interval
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Place> places;
  double interval_s = 0;
  size_t running = 0;
  bool is_ending = false;
  Fd event;

  double pause_of(const Place& place) const {
    return place.pause_s != 0 ? std::max(place.pause_s, interval_s) : interval_s;
  }

  void take_answer(Place& place, Result<command::Answer> answer) {
    auto& seen = place.seen;
    place.looked_at = Clock::now();
    ++seen.looks;
    if (!answer) {
      seen.before.reset();
      seen.error = answer.error().message;
      seen.exit_code = command::exit_code_of(answer.error().code);
      place.pause_s = place.pause_s == 0 ? interval_s : std::min(place.pause_s * 2, longest_pause_s);
      return;
    }
    seen.before = seen.error ? std::nullopt : std::move(seen.now);
    seen.now = std::move(answer->told);
    seen.error.reset();
    seen.exit_code = seen.now->is_draining ? command::exit_codes::unhealthy : command::exit_codes::ok;
    place.pause_s = 0;
  }

  void tell() {
    const uint64_t one = 1;
    (void)!::write(event.get(), &one, sizeof one);
    changed.notify_all();
  }
};

Result<Watch> Watch::start(std::vector<std::pair<std::string, command::Asker>> nodes, double interval_s) {
  auto shared = std::make_shared<Shared>();
  shared->event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->event) return fail(TC_ERR_IO, "eventfd: {}", std::generic_category().message(errno));
  shared->interval_s = interval_s;
  for (const auto& [address, asker] : nodes) shared->places.emplace_back().seen.address = address;
  Watch watch(shared);
  for (size_t i = 0; i < nodes.size(); ++i) {
    {
      const std::lock_guard lock(shared->mutex);
      ++shared->running;
    }
    auto thread =
        quiet_thread([shared, i, asker = std::move(nodes[i].second)]() mutable { run(shared, i, std::move(asker)); });
    if (!thread) {
      const std::lock_guard lock(shared->mutex);
      --shared->running;
      return context(fmt::format("no thread can be started to ask {}", nodes[i].first), std::move(thread).error());
    }
    thread->detach();
  }
  return watch;
}

Watch::~Watch() {
  if (shared_) (void)finish();
}

void Watch::run(const std::shared_ptr<Shared>& shared, size_t index, command::Asker asker) {
  std::unique_lock lock(shared->mutex);
  auto& place = shared->places[index];
  const auto address = place.seen.address;
  while (!shared->is_ending) {
    const bool was_there = place.seen.now && !place.seen.error;
    lock.unlock();
    auto answer = asker.ask(address);
    // The connection may have been lost since the last question, for instance because the node was started anew.
    if (!answer && was_there && answer.error().code == TC_ERR_DISCONNECTED) answer = asker.ask(address);
    lock.lock();
    shared->take_answer(place, std::move(answer));
    shared->tell();
    // The interval may change meanwhile.
    while (!shared->is_ending) {
      const auto next = place.looked_at + duration_of(shared->pause_of(place));
      if (Clock::now() >= next) break;
      shared->changed.wait_until(lock, next);
    }
  }
  lock.unlock();
  {
    const auto closed = std::move(asker);
  }
  lock.lock();
  --shared->running;
  shared->changed.notify_all();
}

std::vector<Seen> Watch::seen() const {
  const std::lock_guard lock(shared_->mutex);
  std::vector<Seen> all;
  for (const auto& place : shared_->places) {
    all.push_back(place.seen);
    const auto next = place.looked_at + duration_of(shared_->pause_of(place));
    all.back().again_in_s = std::max(0.0, std::chrono::duration<double>(next - Clock::now()).count());
  }
  return all;
}

int Watch::fd() const noexcept { return shared_->event.get(); }

void Watch::take() {
  uint64_t count = 0;
  (void)!::read(shared_->event.get(), &count, sizeof count);
}

void Watch::set_interval(double interval_s) {
  const std::lock_guard lock(shared_->mutex);
  shared_->interval_s = interval_s;
  shared_->changed.notify_all();
}

void Watch::wait_for_looks(uint64_t count) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [&] {
    return std::ranges::all_of(shared_->places, [&](const auto& place) { return place.seen.looks >= count; });
  });
}

bool Watch::finish() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_ending = true;
  shared_->changed.notify_all();
  return shared_->changed.wait_for(lock, patience, [&] { return shared_->running == 0; });
}

}  // namespace tc::top
