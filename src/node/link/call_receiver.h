// SPDX-License-Identifier: Apache-2.0
//
// The target's half of a link: runs the calls that come, and gets the code that they need.
//
// What happens to a call whose code is missing:
//
//   CALL 7 ......... number 7 has no code here: it was never sent, or the store has freed it
//                    -> NEED 7 to the peer; the call waits, and so does every later frame of the link, in order
//   CODE 7 ......... the code is read, checked and loaded (CodeLoader)
//     loaded         -> the waiting frames run, until one waits for other code
//     pending        -> another node compiles it; the frames wait on, and on_compiled() continues
//     error          -> the reason is kept for number 7: the waiting call and later ones fail with it at once
//   CALL_CODE 7 .... a call that brings its code: loaded as above, then run
//
// A call waits, too, while it may not run beside a call that another thread runs, or for a thread (node/workers/workers.h).
//
// A waiting call fails when its deadline passes, when too much waits, and when the link is lost. Whatever becomes of a
// call, its caller is told (Answers). Plain calls of loaded code never come here: target/receiver.cc runs them.
//
// Calls wait here, too, while the peer is behind with reading what this node sends it (Channel::is_behind), most of all
// the answers to its earlier calls. Two nodes that flood each other with calls do that to each other. Why they go on:
//
//   1. Calls are held, and everything else is read. The stream from the peer also carries the answers, code and barriers
//      that this node waits for, and to read them is what lets the peer's own backlog drain. So two nodes that both hold
//      calls still empty each other's backlogs. No held call adds to a backlog, so each falls below its mark in the end,
//      and the calls run.
//   2. What is held is bounded: from soft_limit_ on, is_full(), the stream is not read (Link::pause_until_drained), and
//      flow control stops the peer's senders. They then wait for room, poll meanwhile, and read our backlog.
//   3. Not to read is safe only as long as the peer reads. Two nodes that both stopped would wait for each other for ever.
//      So a link is paused only while its backlog drains. If nothing has left for a while, soft_limit_ is raised, and
//      reading goes on. In front of the answers are then only calls that were on their way already: applications send
//      none while there is a backlog (Channel::post_in_time).
//   4. A peer that reads nothing at all makes soft_limit_ rise above what may wait. From then on reading never stops.
//      Calls beyond are refused, and these answers, which nobody reads, end the link as ever (Channel::may_queue).
//
// A node that drains takes no new call: each is refused at once, also while earlier ones wait here, which go on. But while the
// peer is behind, what comes is held, to be refused in its turn: else refusals would fill the backlog, and end the link.
//
// Whatever a frame says is copied before it is checked: its memory may be the peer's to change.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/code/node_code.h"
#include "node/link/services.h"
#include "node/workers/call_wish.h"
#include "target/receiver.h"

namespace tc::node {

// What a link remembers of a content id; never 0.
inline uint64_t id_prefix_of(const ContentId& id) noexcept {
  uint64_t prefix;
  std::memcpy(&prefix, id.bytes.data(), sizeof prefix);
  return prefix | 1;
}

class CallReceiver {
 public:
  // `link`: answers to calls go back by it.
  CallReceiver(Link& link, Channel& channel, const LinkServices& services);

  // The code of numbers that may run at once. While calls wait, none may overtake them: then there are none.
  const target::NumberTable& numbers() const noexcept {
    return waiting_bytes_ == 0 && runs_at_once_ && canceled_ahead_.empty() && !channel_.is_behind() ? numbers_
                                                                                                    : no_numbers();
  }

  // In bytes; a peer that sends a longer one breaks the protocol.
  size_t longest_call() const noexcept { return longest_call_; }

  // ---- Frames. False: the peer breaks the protocol and was disconnected.

  bool on_call(const wire::FrameHeader& header, std::byte* body);
  bool on_call_code(const wire::FrameHeader& header, ByteView body);
  bool on_code(const wire::FrameHeader& header, const wire::CodeBody& code, ByteView body);
  // The peer asks to be told when all calls before have ended.
  bool on_barrier(const wire::FrameHeader& header, ByteView body);
  // The node drains: calls that come from now on are refused (CallPlaces::takes_calls()).
  void take_no_more() noexcept;
  // Fails a call that is not run, with the answer that its caller waits for.
  void refuse(const wire::FrameHeader& header, ByteView body, const Error& why);

  // ---- Calls that wait, for code or for the peer to read

  bool has_waiting() const noexcept { return waiting_bytes_ != 0; }
  size_t waiting() const noexcept { return waiting_.size(); }
  // Runs calls that were held because the peer was behind, as long as it is not. False: it breaks the protocol.
  bool run_held() { return is_stuck() || resume(); }
  // Do calls wait for nothing but their turn?
  bool may_run_held() const noexcept { return has_waiting() && !is_stuck() && !channel_.is_behind(); }
  // So many calls are held that the peer is not to be read now.
  bool is_full() const noexcept {
    if (awaits_worker_) return takes_calls_ && waiting_bytes_ >= worker_limit;
    return waiting_bytes_ >= soft_limit_ && channel_.is_behind() && !is_stuck();
  }
  // It must be read all the same, as nothing drains: some more may wait.
  void read_on() noexcept { soft_limit_ += first_soft_limit_ / 4; }

  // The peer takes back the call of that token: one that waits is refused in its turn, one in a cell ends with the cell.
  void cancel(uint64_t token);
  // That frame has come, and others that are not read yet stand in front of it. The call may be one of them.
  void foresee_cancel(uint64_t token);

  // The call in front waits until calls on other threads have ended.
  bool awaits_worker() const noexcept { return awaits_worker_; }
  // One has ended. True: what waits may go on, and is taken up when the link is read next.
  bool may_go_on() noexcept;
  // A call of this link is handed over, and has ended elsewhere.
  void on_handed_over() noexcept { ++handed_over_; }
  void on_handed_back() noexcept { --handed_over_; }
  // So many of its calls run elsewhere.
  size_t handed_over() const noexcept { return handed_over_; }

  // What calls wait for was compiled elsewhere, or will never be. continue_after_compiling() takes them up.
  bool awaits_compiler() const noexcept { return awaits_compiler_; }
  bool continue_after_compiling();
  void each_waiting(ShowCall show) const;
  // Shows the call in a frame, if it is one that waits for an answer.
  void show_call(const wire::FrameHeader& header, ByteView body, ShowCall show) const;
  // The link is lost: callers behind a return address are told; the peer learns of it by itself. May throw std::bad_alloc
  // and be called again.
  void fail_waiting(const Error& reason);
  // The same for one frame that will not be run.
  void fail_unrun(const wire::FrameHeader& header, ByteView body, const Error& reason);
  // The same for one that this node forwarded to the peer, and that did not leave.
  void fail_unsent(const wire::FrameHeader& header, ByteView body, const Error& reason);

  // ---- Code

  // The peer has greeted, or what peers may do has changed: asks anew what this one may.
  void renew_rights();
  // May the peer run code here?
  bool may_run() const noexcept { return may_run_; }
  // Does no line of the keyring limit what code of this peer may do?
  bool is_unrestricted() const noexcept { return !is_restricted_; }
  // Is it believed what it says about other nodes? Then it may as well run any code.
  // Not one whose code runs in cells alone.
  bool is_believed() const noexcept { return is_believed_; }
  // Null: it may not connect, but we connected to it.
  const trust::Rights* rights() const noexcept { return rights_ ? &*rights_ : nullptr; }
  // What that code, which runs now, may do in this call of the peer.
  const trust::SharedRights& rights_of(const target::Code* code) const {
    if (running_ != nullptr) return running_->rights;
    return is_restricted_ ? restricted_rights_of(code) : full_rights_;
  }
  // By which number the peer calls that code; nothing when it never did.
  std::optional<uint32_t> number_of(const ContentId& id) const noexcept;
  // The store is about to free this code.
  void forget(const target::Code& code) noexcept {
    numbers_.forget(code);
    code_rights_.erase(&code);
    std::erase_if(on_behalf_, [&](const auto& one) { return one.second.code == &code; });
  }

 private:
  struct Waiting {
    wire::FrameHeader header;
    Bytes body;
    uint64_t since_ns;
    Charge charge;
    bool is_refused = false;                                                // it came while the node drained
    size_t size() const noexcept { return body.size() + sizeof(Waiting); }  // never 0
  };
  // What a number stands for by which the peer calls on behalf of others.
  struct OnBehalf {
    target::Code* code;
    wire::Chain chain;
    trust::SharedRights rights;
  };

  static const target::NumberTable& no_numbers() noexcept;
  bool check(const wire::FrameHeader& header);
  bool broken(const std::string& what);
  // Is a call that comes now, or is taken up, not to be run, whatever it calls?
  bool turns_away() const noexcept { return !takes_calls_ && !(may_run_ && resumed_since_ns_); }
  bool turn_away(const wire::FrameHeader& header, ByteView body);
  void refuse_as_draining(const wire::FrameHeader& header, ByteView body);
  void answer_refused(const wire::FrameHeader& header, ByteView body, tc_status_t status, std::string message);
  // Runs a call here, on another thread, or later. `on_behalf`: null: the peer calls for itself.
  bool run(const wire::FrameHeader& header, target::Code& code, const OnBehalf* on_behalf, std::byte* body);
  Status hand_over(target::Code& code, ByteView payload, bool in_cell);

  // Takes in code that came with `number`: checks it and the peer's rights to it, loads it where it is missing here, and binds
  // the number to it.
  LoadResult learn(uint32_t number, const wire::CodeBody& code);
  LoadResult bind(uint32_t number, const wire::Chain& chain, target::Code& code, trust::SharedRights rights);
  Status bind_rights(uint32_t number, const wire::Chain& chain, target::Code& code, trust::SharedRights rights);
  Result<trust::SharedRights> decide(const wire::Chain& chain, const Bundle* sent, const Bundle* held);
  const trust::SharedRights& restricted_rights_of(const target::Code* code) const;
  const OnBehalf* on_behalf(uint32_t number) const noexcept {
    const auto found = on_behalf_.find(number);
    return found != on_behalf_.end() ? &found->second : nullptr;
  }
  void add_signatures(const Bundle& sent, const Bundle& held, bool is_limited);
  bool keeps_its_code(uint32_t number, const wire::CodeHead& code);
  const Error* why_unusable(uint32_t number);
  void set_unusable(uint32_t number, const Error& why);
  void ask_for(uint32_t number);

  // Copies the frame and puts it behind those that wait. Returns at once.
  bool queue(const wire::FrameHeader& header, ByteView body);
  // The same, until other calls have ended: those that are in its way, or null, of this link.
  bool queue_for_worker(const wire::FrameHeader& header, ByteView body, const CallWish* wish);
  // The same in front of them: a call with its code, or the code that they wait for.
  bool queue_for_compiler(const wire::FrameHeader& header, ByteView body);
  bool resume();
  bool resume_one(const wire::FrameHeader& header, Bytes& body);
  std::optional<Error> why_not_run(const wire::FrameHeader& header, ByteView body) const;
  bool has_canceled() const noexcept { return !canceled_.empty() || !canceled_ahead_.empty(); }
  bool is_canceled(const wire::FrameHeader& header, ByteView body) const;
  // The call in front waits for code, or for other calls to end.
  bool is_stuck() const noexcept { return awaited_.has_value() || awaits_compiler_ || awaits_worker_; }
  // A call that comes now waits: others do, of which it is none, or it would add to a backlog.
  bool must_wait() const noexcept { return (has_waiting() && !resumed_since_ns_) || channel_.is_behind(); }

  // Of calls that wait for other threads, before the peer is not read.
  static constexpr size_t worker_limit = 1024u * 1024;

  Link& link_;
  Channel& channel_;
  target::Executor& executor_;
  CallPlaces& places_;
  NodeCode& code_;
  Answers& answers_;
  Authority& authority_;
  const Common& common_;
  const size_t longest_call_;

  bool takes_calls_ = false;  // the peer may run code, and the node does not drain
  bool may_run_ = false;
  bool is_believed_ = false;
  bool runs_at_once_ = false;  // in the node's process, without a look at the rights of each call
  bool is_restricted_ = true;  // a line of the keyring says what code of this peer may do
  target::NumberTable numbers_;
  std::optional<trust::Rights> rights_;
  Error why_not_;  // it may not run code
  // Of a restricted peer: what the code behind its numbers may do.
  std::unordered_map<const target::Code*, trust::SharedRights> code_rights_;
  trust::SharedRights full_rights_;      // of a peer that is not restricted, and calls for itself
  const trust::SharedRights no_rights_;  // of code that a restricted peer did not name
  // By number. They are in no table of the hot path, as rights belong to the number there, not to the code.
  std::unordered_map<uint32_t, OnBehalf> on_behalf_;
  const OnBehalf* running_ = nullptr;  // the call that runs is made on behalf of others
  // Of each number the beginning of the content id that it was bound to: a number stands for one code as long as the link
  // lives, because the peer's calls by that number were made for it.
  std::vector<uint64_t> id_prefixes_;
  // Numbers whose code was refused, and why; void once another library was loaded, as that may have been missing.
  std::unordered_map<uint32_t, Error> unusable_;
  uint64_t unusable_since_ = 0;
  std::optional<uint32_t> awaited_;  // the number that the peer was asked for
  std::deque<Waiting> waiting_;      // calls, and all frames that must stay behind them
  size_t waiting_bytes_ = 0;
  std::unordered_set<uint64_t> canceled_;        // tokens of calls of the peer that it took back while something waited
  std::unordered_set<uint64_t> canceled_ahead_;  // of cancel frames that were seen and are not read yet
  std::optional<uint64_t> resumed_since_ns_;     // when the waiting call that is being taken up came; empty: none is
  const size_t first_soft_limit_;
  size_t soft_limit_;  // from so many waiting bytes on, the peer is not read while it is behind
  bool awaits_worker_ = false;
  bool awaits_its_own_calls_ = false;  // what it waits for then
  CallWish wish_;                      // and else
  size_t handed_over_ = 0;
  bool awaits_compiler_ = false;  // the first of them has code that is being compiled elsewhere
  Bytes code_copy_;               // of the last call with code: its memory is used again
  Bytes scratch_;                 // payloads that need more alignment than a frame has
};

}  // namespace tc::node
