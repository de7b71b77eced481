// SPDX-License-Identifier: Apache-2.0
#include "transport/handshake.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <new>
#include <system_error>

#include "base/quiet_thread.h"
#include "transport/greeting.h"

namespace tc::transport {

void Handshake::progress() noexcept {
  if (is_computed_) return;
  Status result;
  try {
    result = exchange();
  } catch (const std::bad_alloc&) {
    result = std::unexpected(Error{TC_ERR_NO_MEMORY, "no memory"});
  }
  if (!result) owner_.on_handshake(std::move(result));
}

// Sends what the last step made, and receives what the next one needs. The side that connects begins without.
Status Handshake::exchange() {
  TC_CHECK(stream_.push());
  if (role_ == trust::TlsRole::client && !has_started_) return compute();
  if (role_ == trust::TlsRole::client) TC_CHECK(check_first_bytes());
  auto got = stream_.pull(trust::TlsSession::max_handshake_bytes);
  if (!got && role_ == trust::TlsRole::client && got.error().code == TC_ERR_DISCONNECTED)
    return fail(TC_ERR_LIMIT, "it ended the connection in the encrypted handshake, as a node does that has no room: {}",
                got.error().message);
  if (!got) return context("in the encrypted handshake", std::move(got).error());
  if (*got != 0) return compute();
  owner_.watch_for_handshake(EPOLLIN | (stream_.has_unsent() ? EPOLLOUT : 0u));
  return {};
}

Status Handshake::compute() {
  const auto urgency = role_ == trust::TlsRole::server && !has_started_ ? HandshakeWorker::Urgency::newcomer
                                                                        : HandshakeWorker::Urgency::begun;
  has_started_ = is_computed_ = true;
  owner_.watch_for_handshake(0);
  return worker_.submit(
      stream_.take_session(), this,
      [this](auto session, auto complete) { on_step(std::move(session), std::move(complete)); }, urgency);
}

// A node that has no room for us says so before any handshake. Nobody has signed that, so it only makes a better message.
Status Handshake::check_first_bytes() const {
  std::array<std::byte, 4096> bytes;
  const auto got = ::recv(stream_.socket().get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_PEEK);
  if (got <= 0 || bytes[0] != std::byte{'T'}) return {};
  const auto refusal = decode_greeting(ByteView(bytes).first(static_cast<size_t>(got)));
  if (refusal) return fail(TC_ERR_MALFORMED, "it answered without encryption");
  return fail(refusal.error());
}

void Handshake::on_step(std::unique_ptr<trust::TlsSession> session, Result<bool> complete) noexcept {
  is_computed_ = false;
  has_answered_ |= !session->to_send().empty();
  stream_.set_session(std::move(session));
  Status sent = stream_.push();  // after a failure: an alert that tells the peer
  if (!complete) return owner_.on_handshake(fail(std::move(complete).error()));
  if (*complete || !sent) return owner_.on_handshake(std::move(sent));
  progress();
}

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
  auto thread = quiet_thread([this] { run(); });
  if (!thread) {
    poller_.remove(done_event_);
    done_event_.reset();
    return fail(TC_ERR_LIMIT, "there is no thread for handshakes: {}", thread.error().message);
  }
  thread_ = std::move(*thread);
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

Status HandshakeWorker::submit(std::unique_ptr<trust::TlsSession> session, const void* client, OnStep on_step,
                               Urgency urgency) {
  assert(session != nullptr);
  if (!thread_.joinable()) TC_CHECK(start());
  try {
    std::list<Step> one;
    one.push_back({client, std::move(on_step), std::move(session)});
    const std::scoped_lock lock(mutex_);
    auto& waiting = urgency == Urgency::begun ? begun_ : newcomers_;
    waiting.splice(waiting.end(), one);
  } catch (const std::bad_alloc&) {
    return fail(TC_ERR_NO_MEMORY, "no memory");
  }
  condition_.notify_one();
  return {};
}

void HandshakeWorker::cancel(const void* client) noexcept {
  std::list<Step> dropped;  // destroyed without the lock
  const std::scoped_lock lock(mutex_);
  for (auto* const steps : {&begun_, &newcomers_, &done_})
    for (auto step = steps->begin(); step != steps->end();) {
      const auto next = std::next(step);
      if (step->client == client) dropped.splice(dropped.end(), *steps, step);
      step = next;
    }
  for (auto& step : running_)
    if (step.client == client) step.client = nullptr;
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
    one.front().on_step(std::move(one.front().session), std::move(one.front().complete));
  }
}

}  // namespace tc::transport
