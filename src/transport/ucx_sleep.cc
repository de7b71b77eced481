// SPDX-License-Identifier: Apache-2.0
//
// Falling asleep without missing anything. In this order: say on every ring that we sleep; make sure that senders
// either see it or have made their frame visible (membarrier); look at everything once more; arm UCX; look again.
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/hot_page.h"
#include "transport/ucx_transport.h"

namespace tc::transport {

namespace {

// Without a barrier in other processes a frame could be slept over: nap only.
constexpr uint64_t nap_ns = 1'000'000;
// UCX does not say when a full socket takes bytes again: look now and then while something waits to be sent.
constexpr uint64_t sending_nap_ns = 5'000'000;

// Of so many waits one is progress(): messages that never end shall not keep the rest waiting. (Without messages a wait
// ends soon.)
constexpr uint32_t waits_between_progress = 16;

// Between messages a nap does not watch the sockets, which would cost it 140 ns, when that was done so recently; and it
// does not last longer. On them peers come and go.
constexpr uint64_t unwatched_ns = 10'000'000;

bool barrier_everywhere() noexcept { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

}  // namespace

// Messages are counted as they come; only what is written into our memory has to be looked for, peer by peer, each of
// them cold by now.
[[gnu::hot]] bool UcxTransport::anything_to_read(uint64_t arrivals_before) noexcept {
  if (!noted_.empty() || pulse.arrivals != arrivals_before) return true;
  if (!pulse.direct) return false;
  return std::ranges::any_of(peers_, [](const auto& peer) { return peer != nullptr && peer->has_frames(); });
}

// True when it is safe to wait now.
[[gnu::hot]] bool UcxTransport::settle_into_sleep(Deadline deadline) noexcept {
  const auto before = pulse.arrivals;
  if (anything_to_read(before)) return false;
  for (;;) {
    const auto armed = ucp_worker_arm(ucp_);
    if (armed == UCS_OK) return !anything_to_read(before);
    if (armed != UCS_ERR_BUSY || deadline.passed()) return false;
    turn_worker();
    if (anything_to_read(before)) return false;
  }
}

[[gnu::hot]] bool UcxTransport::sleep(Deadline deadline) noexcept {
  if (!flush_list_.empty()) flush_list_.flush_all();
  if (anything_to_read(pulse.arrivals)) return false;
  // Who sends us messages wakes UCX: only writers to our memory must see the flag.
  const bool direct = pulse.direct;
  if (direct) tell_writers(true);
  if (direct && !barrier_everywhere())
    deadline = std::min(deadline.at_ns(), now_ns() + nap_ns) == deadline.at_ns() ? deadline
                                                                                 : Deadline::at_ns(now_ns() + nap_ns);
  const auto end = settle_into_sleep(deadline) ? wait_for_event(deadline) : SleepEnd::other;
  if (direct) tell_writers(false);
  turn_worker();
  // With more nodes than cores a node is woken for nearly every message: then there is nothing else to see to.
  if (end == SleepEnd::message) return false;
  uint64_t count = 0;
  const bool woken = read(wake_fd_.get(), &count, sizeof count) > 0;  // maybe after its time had ended the wait
  look_around(0);
  return end == SleepEnd::time && !woken;
}

void UcxTransport::tell_writers(bool asleep) noexcept {
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    if (asleep)
      peer->fall_asleep();
    else
      peer->wake_up();
  }
}

[[gnu::hot]] UcxTransport::SleepEnd UcxTransport::wait_for_event(Deadline deadline) noexcept {
  uint64_t until = deadline.at_ns();
  const uint64_t now = now_ns();
  if (std::exchange(peers_need_watching_, false)) {
    for (const auto& peer : peers_) {
      if (peer == nullptr) continue;
      if (peer->next_time() != 0) until = std::min(until, peer->next_time());
      if (peer->has_sends_on_the_way()) until = std::min(until, now + sending_nap_ns);
      peers_need_watching_ |= peer->next_time() != 0 || peer->has_sends_on_the_way();
    }
  }
  if (until <= now) return SleepEnd::time;
  return wait_for_event(until - now, epoll_);
}

// For messages, or for what `other` says.
[[gnu::always_inline]] inline UcxTransport::SleepEnd UcxTransport::wait_for_event(uint64_t left_ns,
                                                                                  const Fd& other) noexcept {
  const timespec timeout{static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
  // UCX's descriptor is a tree of its own already: one level more would be paid for with each message.
  pollfd events[2] = {{event_fd_, POLLIN, 0}, {other.get(), POLLIN, 0}};
  const int happened = ppoll(events, 2, &timeout, nullptr);
  if (happened == 0) return SleepEnd::time;
  return happened > 0 && events[1].revents == 0 ? SleepEnd::message : SleepEnd::other;
}

[[gnu::always_inline]] inline UcxTransport::SleepEnd UcxTransport::nap(const Looking& looking) noexcept {
  const auto now = looking.now(), left = looking.nap_until().at_ns() - now;
  const bool watches = now - last_look_ >= unwatched_ns;
  if (watches) last_look_ = now;
  return wait_for_event(watches ? left : std::min(left, unwatched_ns), watches ? epoll_ : wake_fd_);
}

// Whether nothing has happened but calls that ran at once, and it is not time for progress().
[[gnu::always_inline]] inline bool UcxTransport::goes_on() noexcept {
  if (pulse.due || greeting_ || failures_ != failures_seen_ || (waits_ + 1) % waits_between_progress == 0 ||
      !events_.goes_on())
    return false;
  ++waits_;
  pulse.hands_over = pulse.at_once;
  return true;
}

// With more nodes than cores each turn of this loop is one that others wait for, and each sleep is in a message's way, on
// code and memory that are cold. So it is one piece, and whatever else may have to be done is for progress() and sleep().
// Arming UCX is two calls of the system: over sockets alone it is left out from a message to the next nap, unless that
// ended with nothing to be found.
[[gnu::always_inline]] inline Seen UcxTransport::find_messages(Looking& looking) noexcept {
  while (true) {
    if (ucp_worker_progress(ucp_) != 0 || pulse.due || failures_ != failures_seen_) {
      arms_ = !by_sockets_alone_;
      if (!goes_on()) return Seen::something;
      looking.begin_anew();
      continue;
    }
    const auto seen = looking.go_on(true);
    if (seen == Seen::nothing) {
      ::sched_yield();
      continue;
    }
    if (seen == Seen::over || peers_need_watching_ || !looking.may_nap()) return seen;
    if (arms_ && ucp_worker_arm(ucp_) != UCS_OK) continue;  // something came
    arms_ = true;
    const auto end = nap(looking);
    if (end == SleepEnd::time) return looking.go_on(false);
    if (end == SleepEnd::other) return Seen::too_long;  // sleep() finds it as well
  }
}

TC_ON_HOT_PAGE Seen UcxTransport::wait_for_messages(Looking& looking) noexcept {
  if (!busy_ || greeting_ || pulse.due || ++waits_ % waits_between_progress == 0) [[unlikely]]
    return Seen::something;
  return handing_over([&] { return find_messages(looking); });
}

void UcxTransport::wake() noexcept {
  const uint64_t one = 1;
  (void)!write(wake_fd_.get(), &one, sizeof one);
}

}  // namespace tc::transport
