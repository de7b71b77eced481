// SPDX-License-Identifier: Apache-2.0
#include "transport/handshake_worker.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <system_error>

#include "base/quiet_thread.h"

namespace tc::transport {

namespace {

// A tenth of the share of an ordinary thread, when the two compete for a core.
constexpr int niceness = 10;

void lower_priority() noexcept {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), getpriority(PRIO_PROCESS, 0) + niceness);
}

}  // namespace

Status HandshakeWorker::start() {
  Fd event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event) return fail(TC_ERR_LIMIT, "there is no descriptor for handshakes: {}", system_words(errno));
  TC_CHECK(poller_.add(event, *this, EPOLLIN));
  done_event_ = std::move(event);
  try {
    thread_ = quiet_thread([this] { run(); });
  } catch (const std::exception& problem) {
    poller_.remove(done_event_);
    done_event_.reset();
    return fail(TC_ERR_LIMIT, "there is no thread for handshakes: {}", problem.what());
  }
  return {};
}

HandshakeWorker::~HandshakeWorker() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  condition_.notify_one();
  thread_.join();
}

Status HandshakeWorker::submit(std::unique_ptr<trust::TlsSession> session, Client& client, Urgency urgency) {
  if (!thread_.joinable()) TC_CHECK(start());
  try {
    std::list<Step> one;
    one.push_back({&client, std::move(session), false});
    const std::scoped_lock lock(mutex_);
    auto& waiting = urgency == Urgency::begun ? begun_ : newcomers_;
    waiting.splice(waiting.end(), one);
  } catch (const std::bad_alloc&) {
    return fail(TC_ERR_NO_MEMORY, "no memory");
  }
  condition_.notify_one();
  return {};
}

void HandshakeWorker::cancel(const Client& client) noexcept {
  std::list<Step> dropped;  // destroyed without the lock
  const std::scoped_lock lock(mutex_);
  for (auto* const steps : {&begun_, &newcomers_, &done_})
    for (auto step = steps->begin(); step != steps->end();) {
      const auto next = std::next(step);
      if (step->client == &client) dropped.splice(dropped.end(), *steps, step);
      step = next;
    }
  for (auto& step : running_)
    if (step.client == &client) step.client = nullptr;
}

void HandshakeWorker::run() noexcept {
  lower_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    condition_.wait(lock, [this] { return ends_ || !begun_.empty() || !newcomers_.empty(); });
    if (ends_) return;
    if (!begun_.empty())
      running_.splice(running_.end(), begun_, begun_.begin());
    else
      running_.splice(running_.end(), newcomers_, std::prev(newcomers_.end()));
    auto& step = running_.front();
    lock.unlock();
    try {
      step.complete = step.session->handshake();
    } catch (const std::bad_alloc&) {
      step.complete = std::unexpected(Error{TC_ERR_NO_MEMORY, "no memory"});
    }
    lock.lock();
    std::list<Step> cancelled;
    auto& to = step.client != nullptr ? done_ : cancelled;
    to.splice(to.end(), running_);
    lock.unlock();
    const uint64_t one = 1;
    if (cancelled.empty()) (void)!::write(done_event_.get(), &one, sizeof one);
    cancelled.clear();
    lock.lock();
  }
}

// A client that is called may cancel others: so steps are taken one by one.
void HandshakeWorker::on_ready(uint32_t) noexcept {
  uint64_t count = 0;
  (void)!::read(done_event_.get(), &count, sizeof count);
  for (;;) {
    std::list<Step> one;
    {
      const std::scoped_lock lock(mutex_);
      if (done_.empty()) return;
      one.splice(one.end(), done_, done_.begin());
    }
    one.front().client->on_step(std::move(one.front().session), std::move(one.front().complete));
  }
}

}  // namespace tc::transport
