// SPDX-License-Identifier: Apache-2.0
//
// Everything between this node and one peer (docs/wire-format.md). A link owns the parts and hands each frame to the part
// that it is for:
//
//   Channel        the connection: greeting, frames that leave or wait for room, disconnecting
//   CallSender     our calls, and the code that they need at the peer
//   CallReceiver   the peer's calls, and the code that they need here
//   SliceExchange  questions for code that runs on other CPUs
//
// What is left is the link's own: replies, barriers, questions about a node, and frames that put together what came in pieces.
//
// Thread: the node's. Links owns it.
#pragma once

#include "node/link/call_receiver.h"
#include "node/link/call_sender.h"
#include "node/link/forwarded_calls.h"
#include "node/link/pieces.h"
#include "node/rates.h"

namespace tc::node {

class alignas(64) Link final : public target::FrameHandler {
 public:
  using State = Channel::State;

  // `initiator`: we connected, so we greet first.
  Link(Links& links, const LinkServices& services, std::unique_ptr<transport::Connection> connection, bool initiator);

  // ---- Its parts, and what is asked of them most

  Channel& channel() noexcept { return channel_; }
  const Channel& channel() const noexcept { return channel_; }
  CallSender& sender() noexcept { return sender_; }
  CallReceiver& receiver() noexcept { return receiver_; }
  const CallReceiver& receiver() const noexcept { return receiver_; }
  SliceExchange& slices() noexcept { return slices_; }
  State state() const noexcept { return channel_.state(); }
  bool is_ready() const noexcept { return channel_.is_ready(); }
  bool is_lost() const noexcept { return channel_.is_lost(); }
  const Error& reason() const noexcept { return channel_.reason(); }
  const wire::Hello& peer() const noexcept { return channel_.peer(); }
  std::string peer_label() const { return channel_.peer_label(); }
  uint64_t id() const noexcept { return channel_.id(); }

  // ---- Sending

  void post_reply(const wire::Reply& reply);
  // The answer to a call of another node, which the peer passed on and passes back.
  void post_reply_for(const wire::ReturnAddress& caller, const wire::Reply& reply);
  // Tells how many of the peer's calls without an answer have failed while it was behind with reading. In front of the
  // answer to a barrier, which says that all before it is told.
  void report_untold_failures();
  // Tells the peer something about the cluster (wire/cluster_event.h).
  void post_event(uint32_t what, ByteView body);
  // A request to the peer to compile, or the answer to one of its own (wire/compile.h).
  void post_compile(uint32_t what, ByteView body) { channel_.post_or_disconnect(wire::Kind::compile, 0, what, body); }
  // The call of that token is not waited for any more: it does not leave, or the peer is told. Where the peer does not take
  // that now, it runs the call.
  void cancel_call(uint64_t token) noexcept;
  // Asks the peer about itself. Its answer, as text (statistics.h), completes the future of that token. TC_ERR_BUSY: it has
  // not answered the question before this one.
  Status ask_statistics(uint64_t token);
  // Waits until the peer ran everything sent so far. Errors: the first failure since the last flush.
  Status flush(Deadline deadline);
  // A flush for which nobody waits here: each advance() does what can be done now. True: it has ended, well or not.
  struct Flush {
    uint64_t barrier = 0;          // that was sent to the peer; 0: not yet
    std::optional<Error> failure;  // it could not be sent
  };
  bool advance(Flush& flush);
  // Moves queued frames on, as far as there is room. True: calls that were held for that are run with the next receive().
  bool drain_backlog();
  // That code has more signatures here than before: the next call of it that this node sends, by any link, brings it again.
  void send_code_again(const ContentId& id);

  // Calls that came by it.
  uint64_t calls() const noexcept { return in_->calls() + other_calls_; }

  // ---- Receiving

  // The peer's greeting. An error: the peer is not taken, and the caller tells it.
  Status accept_greeting(ByteView greeting, ByteView own);
  // What peers may do has changed: asks anew what this one may.
  void renew_rights();
  // It is open: the key of the peer is in use.
  void record_use();
  // Takes frames off the stream and runs them. How many. May throw std::bad_alloc.
  size_t receive();
  // Has the peer written something into our memory?
  bool has_frame() const noexcept { return in_->peek() != 0; }
  // Its first call waits until calls on other threads have ended.
  void await_worker();
  // What calls of this link wait for was compiled, or will never be: they are taken up with the next receive().
  void on_compiled();
  // Takes off what has come without running it. How many calls. At the node's end, so that the peer can go on reading what we
  // send.
  size_t discard_received() noexcept;
  // How much waits here to be sent and still can be: bytes, and calls.
  size_t unsent() const noexcept;
  // A large message of which too little comes fails, and what has come of it is dropped. `passed_ns`: since the last call.
  // True: there is none.
  bool expire_unfinished(uint64_t passed_ns);
  // Of a link that Links::pause() paused: is it to be read again?
  bool may_go_on(uint64_t now_ns) noexcept;
  // The peer is gone: once what it sent before has run (receive()), the link is lost with `reason`.
  void end(const Error& reason);
  // At this node's own end, where nothing more runs: a link whose peer is gone is lost now.
  void end_now() noexcept;

  // ---- Its end in good order
  //
  //   we connected       release(): disconnect with status 0 leaves, when our last endpoint is closed
  //   the peer did       end(), when its disconnect has come, and nothing here uses the link

  // Does this side use the link?
  bool is_used() const noexcept {
    return endpoints != 0 || channel_.has_backlog() || sender_.waiting() != 0 || receiver_.has_waiting() ||
           receiver_.handed_over() != 0;
  }
  // One side has released it: nothing new begins here.
  bool is_ending() const noexcept { return channel_.is_released() || is_released_by_peer_; }
  bool is_released_by_peer() const noexcept { return is_released_by_peer_; }
  // Has the peer, which has released the link, run what was sent to it? Until then it may need code from here. Requests an
  // answer when it is called first; a peer that gives none for ten seconds is not waited for.
  bool is_run_by_peer();
  Error closed_by_peer() const { return {TC_ERR_DISCONNECTED, fmt::format("{} closed the connection", peer_label())}; }

  // ---- For snapshots, and after the link was lost

  // Calls with a token that came or go by this link and wait here.
  void each_waiting_call(ShowCall show) const;
  // Everything that waits on a lost link fails. May throw std::bad_alloc and be called again.
  void fail_waiting();

  // While one lives, the link is not freed: of a thread that waits. What it polls for meanwhile may close the last endpoint.
  class Hold {
   public:
    explicit Hold(Link& link) noexcept : link_(link) { ++link_.holds; }
    ~Hold() {
      if (--link_.holds == 0 && link_.is_lost()) [[unlikely]]
        link_.end_of_holds();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Link& link_;
  };

  FuturesOfLink futures;     // FutureTable's: of calls that left by this link
  ForwardedCalls forwarded;  // that came by it

  // Set by Links:
  uint32_t holds = 0;              // Hold
  uint32_t endpoints = 0;          // of the application: the link stays until all are closed
  uint32_t closing_endpoints = 0;  // of these, that were closed where nobody could wait for the flush
  Flush closing_flush;
  uint64_t close_by_ns = 0;     // they end then at the latest
  bool is_pending = false;      // receive() is called with the next poll
  bool ended_in_order = false;  // neither side used it, and nothing was on its way
  bool loss_is_told = false;    // everything that waited on it has failed
  bool is_awaited = false;      // by connect(), which returns the reason when it is lost
  bool meets_nobody = false;    // for answers alone: the node there must be known already, or have this key:
  std::optional<trust::PublicKey> caller_key;
  uint64_t paused_until_ns = 0;  // nothing is received before; 0: it is not paused

 private:
  bool on_frame(const wire::FrameHeader& header, std::byte* body) override;
  const target::NumberTable& numbers() const noexcept override { return receiver_.numbers(); }
  void on_effects() override;
  void on_broken(std::string what) override;

  void end_of_holds() noexcept;
  void send_reply(const wire::Reply& reply);
  wire::Reply too_large(const wire::Reply& reply) const;
  void replace_too_large_replies();
  void look_ahead();
  size_t receive_at_rate();
  void drop_beyond_rate();
  size_t run_held_and_receive();
  void pause_until_drained();
  size_t receive(size_t most);
  void take_up_again();
  bool on_control(const wire::FrameHeader& header, ByteView body);
  bool on_need(const wire::FrameHeader& header, ByteView body);
  bool on_code(const wire::FrameHeader& header, ByteView body);
  bool on_reply(const wire::FrameHeader& header, ByteView body);
  bool take_reply(const wire::FrameHeader& header, ByteView body, const Error* lost = nullptr);
  bool on_barrier_answer(const wire::FrameHeader& header, ByteView body);
  bool on_cancel(ByteView body);
  bool on_event(uint32_t what, ByteView body);
  bool on_compile(uint32_t what, ByteView body);
  bool on_statistics(uint32_t what, ByteView body);
  bool on_statistics_question(ByteView body);
  bool on_statistics_answer(ByteView body);
  void answer_statistics();
  bool on_disconnect(ByteView body);
  void record_for_snapshots(const wire::FrameHeader& header, ByteView body);
  void record_failure(const Error& failure);

  // Frames that came in pieces
  bool on_fragment(uint32_t mark, ByteView piece);
  bool on_whole(Assembly::Whole whole);
  bool on_large_reply(Assembly::Whole whole);
  bool refuse_unfinished(const Assembly::Refused& refused);

  Channel channel_;
  CallSender sender_;
  CallReceiver receiver_;
  SliceExchange slices_;

  Links& links_;
  Authority& authority_;
  std::shared_ptr<Rate> rate_;  // null: the peer may send as much as it wants
  transport::InStream* in_;     // that of the connection, once it is open
  target::Executor& executor_;
  Answers& answers_;
  PeerFailures& peer_failures_;
  NodeCode& code_;
  Waiter& waiter_;
  const std::function<wire::NodeReport()>& report_;
  const Common& common_;

  Assembly assembly_;
  uint64_t other_calls_ = 0;  // that the stream has not counted
  bool is_released_by_peer_ = false;
  Flush last_flush_;  // is_run_by_peer()
  uint64_t last_flush_by_ns_ = 0;
  bool compiled_ = false;        // what calls wait for
  bool looks_ahead_ = false;     // its last turn was long
  bool awaits_drain_ = false;    // it is paused until the peer has read what waits for it
  uint64_t drained_bytes_ = 0;   // of the channel, when that was looked at last
  std::optional<Error> ending_;  // why, while what came before is still to be run
  uint64_t barriers_sent_ = 0;
  uint64_t barriers_passed_ = 0;
  std::optional<uint64_t> awaited_statistics_;  // the future's token, until the peer has answered
  bool owes_statistics_ = false;                // the peer asked, while it was behind with reading
  uint64_t untold_failures_ = 0;                // of the peer's calls, while it is behind with reading
};

// The link that a call came from; null for a call of this node itself. Every FrameHandler of a node is one of its links.
inline Link* link_of(const target::Call& call) noexcept { return static_cast<Link*>(call.link); }
// Who made it, for a signal's handler.
inline std::string_view caller_label(const target::Call& call) noexcept {
  return call.link != nullptr ? link_of(call)->channel().label() : "this node";
}

}  // namespace tc::node
