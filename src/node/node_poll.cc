// SPDX-License-Identifier: Apache-2.0
//
// A node's polling and waiting.
#include <sched.h>
#include <spdlog/logger.h>

#include <algorithm>

#include "node/node.h"

namespace tc::node {

namespace {

// While answers are awaited a wait is cut into pieces, so that deadlines of futures are looked after while nothing comes.
constexpr uint64_t longest_sleep_ns = 50'000'000;
constexpr uint64_t expiry_step_ns = 1'000'000;
// A sender without room: how often it polls before it yields the CPU, how often before it sleeps, and how long.
constexpr uint32_t polls_before_yield = 16;
constexpr uint32_t polls_before_sleep = 4096;
constexpr uint64_t sleep_ns = 200'000;
// Polls without progress while neither the transport nor a backlog is urgent, and progresses between housekeeping.
constexpr uint32_t polls_between_progress = 16;
constexpr uint32_t progresses_between_housekeeping = 64;
// Polls of memory between two readings of the clock; a poll that asks the system is worth one by itself.
constexpr uint32_t polls_of_memory = 16;

// Also when memory runs out in between.
class Raised {
 public:
  explicit Raised(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

Deadline piece_of(Deadline deadline) noexcept {
  return Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + longest_sleep_ns));
}

}  // namespace

size_t Node::poll() {
  if (polling_) return 0;
  const Raised polling(polling_);
  auto& poll_state = transport_->poll_state;
  ++poll_state.poll_number;
  const Raised gathering(poll_state.gathering);
  size_t happened = links_.receive();
  if (!local_calls_.empty()) [[unlikely]] {
    local_calls_.run();
    ++happened;
  }
  // Behind all that may send.
  if (poll_state.urgent || work_.backlog || ++polls_ % polls_between_progress == 0) happened += progress();
  if (futures_.has_notifications()) [[unlikely]]
    notify_ready();
  return happened;
}

size_t Node::progress() {
  size_t moved = transport_->progress();
  if (work_.backlog) [[unlikely]]
    moved += drain_backlogs();
  if (work_.paused_links) [[unlikely]]
    moved += links_.resume_paused();
  if (code_.compiles_for_peers.has_answers()) code_.compiles_for_peers.send_answers();
  if (++progresses_ % progresses_between_housekeeping == 0 || work_.lost_links) [[unlikely]]
    housekeep();
  return moved;
}

size_t Node::drain_backlogs() {
  work_.backlog = false;
  code_.deliver();
  answers_.send_pending_failures();
  return links_.drain_backlogs();
}

// What must be done now and then, and before sleeping.
void Node::housekeep() {
  reserve_.refill();
  code_.housekeep();
  expire();
  buffers_->trim(now_ns());
  if (const auto unsaid = links_.take_unsaid_refusals(); unsaid != 0)
    log_->warn("{} more were refused in a second", unsaid);
  if (authority_.has_changed()) renew_rights();
  if (authority_.is_use_due()) links_.record_uses();
  links_.end_unused();
  links_.handle_losses();
}

void Node::expire() {
  if (!work_.awaits_answers) return;
  if (const auto now = now_ns(); now >= next_expiry_ns_) {
    next_expiry_ns_ = now + expiry_step_ns;
    futures_.expire(now);
    peer_failures_.tick();
    work_.awaits_answers = !futures_.empty();
    if (futures_.has_notifications() && !polling_) {
      const Raised polling(polling_);
      notify_ready();
    }
  }
}

// With polling_ raised: the functions may call the node, but nothing runs meanwhile.
void Node::notify_ready() noexcept {
  const Raised notifying(notifying_);
  futures_.notify_ready();
}

void Node::close_calls() noexcept {
  closing_ = true;
  futures_.fail_all(Error{TC_ERR_CLOSED, "this node was closed"});
  if (polling_) return;  // what polls tells them
  const Raised polling(polling_);
  notify_ready();
}

Status Node::can_wait_for(std::string_view what) const {
  if (executor_.inside_call()) return fail(TC_ERR_INVALID, "an ifunc that runs cannot wait for {}", what);
  if (notifying_) return fail(TC_ERR_INVALID, "a function that a future calls when ready cannot wait for {}", what);
  return {};
}

// ---- Waiting

size_t Node::wait_by(transport::WaitPolicy policy) {
  using Next = transport::WaitPolicy::Next;
  if (polling_) return 0;
  while (true) {
    const bool asks_system = transport_->poll_state.urgent;
    for (uint32_t i = 0; i < (asks_system ? 1 : polls_of_memory); ++i)
      if (const auto happened = poll(); happened != 0) return happened;
    switch (policy.after_empty_poll(asks_system)) {
      case Next::poll: break;
      case Next::block: return block(policy.deadline());
      case Next::give_up: return 0;
    }
  }
}

size_t Node::wait(Deadline deadline, const std::atomic<int>* make_way) {
  return wait_by(transport::WaitPolicy::until(deadline, make_way));
}

size_t Node::wait_ms(uint32_t timeout_ms) {
  return wait_by(transport::WaitPolicy::for_ns(uint64_t{timeout_ms} * 1'000'000));
}

// Everything that is due is done before, so that only what comes can be missed, and the transport looks for that.
size_t Node::block(Deadline deadline) {
  housekeep();
  if (const auto happened = poll(); happened != 0) return happened;
  const auto until = latest_end_of_sleep(deadline.at_ns());
  const auto executed = executor_.executed();
  {
    const Raised polling(polling_);
    const Raised gathering(transport_->poll_state.gathering);
    transport_->sleep(Deadline::at_ns(until));
  }
  links_.handle_losses();
  return poll() + static_cast<size_t>(executor_.executed() - executed);
}

// Events end a sleep; this is for what no event announces.
uint64_t Node::latest_end_of_sleep(uint64_t until) const noexcept {
  if (work_.backlog)
    until = std::min(until, now_ns() + expiry_step_ns);  // room that a peer makes in memory wakes nobody
  if (work_.awaits_answers) until = std::min(until, now_ns() + longest_sleep_ns);
  if (work_.paused_links) until = std::min(until, links_.next_resume_ns());
  until = std::min(until, authority_.next_change_ns());
  return until;
}

bool Node::wait_until(Deadline deadline, FunctionRef<bool()> done) {
  while (!done()) {
    if (deadline.passed()) return done();
    if (pause_ && !polling_)
      pause_(piece_of(deadline));
    else if (wait(piece_of(deadline)) == 0)
      expire();
  }
  return true;
}

bool Node::wait_for_room(Deadline deadline, FunctionRef<bool()> done) {
  for (uint32_t polls = 1; !done(); ++polls) {
    poll();
    if (polls % polls_before_yield == 0 && !yield(deadline, polls)) return done();
  }
  return true;
}

// False when the deadline has passed.
bool Node::yield(Deadline deadline, uint32_t polls) {
  if (deadline.passed()) return false;
  if (pause_ && !polling_) {
    pause_(Deadline::at_ns(polls < polls_before_sleep ? 0 : std::min(deadline.at_ns(), now_ns() + sleep_ns)));
  } else if (polls < polls_before_sleep) {
    ::sched_yield();
  } else if (!polling_) {
    const Raised polling(polling_);
    transport_->sleep(Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + sleep_ns)));
  }
  expire();
  return true;
}

}  // namespace tc::node
