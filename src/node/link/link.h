// SPDX-License-Identifier: Apache-2.0
//
// The ordered way from this node to one peer and back (docs/wire-format.md): greeting, numbering of code, sending,
// receiving, loss. Source side and target side meet here.
//
//   link.cc           sending: frames, fragments, the backlog, barriers
//   link_run.cc       running a call
//   link_slices.cc    calls that wait for the greeting or for code; code for other processors
//   link_compile.cc   code that one node compiles for another
//   link_receive.cc   what frames from the peer mean; calls that wait for code
//   link_large.cc     frames that travel in pieces
//   link_greeting.cc  greeting and BYE
//
// Thread: the node's. Owned by the node.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "node/code_loader.h"
#include "node/link/pieces.h"
#include "source/code_table.h"
#include "source/message.h"
#include "target/receiver.h"
#include "transport/transport.h"
#include "wire/compile.h"
#include "wire/hello.h"

namespace tc::node {

class Node;

// What a link remembers of a content id; never 0.
inline uint64_t meaning_of(const ContentId& id) noexcept {
  uint64_t meaning;
  std::memcpy(&meaning, id.bytes.data(), sizeof meaning);
  return meaning | 1;
}

// A call about to be sent. All views are only needed during the send.
struct Outgoing {
  const Bundle* bundle = nullptr;
  const target::Code* code = nullptr;        // whose bundle it is, when it is that of code that this node holds
  uint32_t index = source::CodeTable::none;  // of a registered ifunc
  ByteView payload;
  const wire::CallTicket* ticket = nullptr;
  const wire::PackedRoute* route = nullptr;
  bool with_code = false;  // even if the peer has it
};

class alignas(64) Link final : public target::FrameHandler {
 public:
  enum class State : uint8_t { greeting, ready, lost };

  // `initiator`: we connected, so we greet first.
  Link(Node& node, std::unique_ptr<transport::Connection> connection, bool initiator);
  ~Link();

  // ---- link.cc: sending

  // Hot: a plain call of code that the peer was offered. False when it takes more than writing one frame now.
  [[gnu::always_inline]] bool try_send(source::Message& message) noexcept {
    if (message.prepared_for != open_mark_ && !prepare(message)) [[unlikely]]
      return false;
    const auto header = message.prepared_header;
    if (out_->reserve(static_cast<size_t>(header >> 32)) == nullptr) [[unlikely]]
      return false;
    out_->put(header, message.payload());
    return true;
  }

  // The same for several messages, in order. How many were sent.
  size_t try_send(source::Message* const* messages, size_t count) noexcept;

  // Sends a call; code goes along when the peer was not offered it yet. Outside of a running ifunc it waits for
  // room (progressing the node) until `deadline`, then TC_ERR_BUSY; inside one it queues, within limits.
  Status send_call(const Outgoing& call, Deadline deadline);
  // Sends a call with a ticket to a peer that was sent this code just before, when there is room. False: send_call()
  // sees to it.
  bool try_pass_on(const Outgoing& call) noexcept;
  // Sends any other frame; queues when there is no room.
  Status post(wire::Kind kind, uint32_t number, ByteView body, uint8_t flags = 0);
  void post_reply(const wire::Reply& reply);
  // Code that was refused may be usable now: it is asked for when it is called again.
  void reconsider() { unusable_.clear(); }
  // Tells the peer something about other nodes; hangs up on one that does not take it.
  void post_notice(uint32_t what, ByteView body);

  // Waits until the peer ran everything sent so far. Errors: the first failure since the last barrier.
  Status flush(Deadline deadline);

  // Moves queued frames on. True when there was something to do.
  bool drain_backlog();
  bool has_backlog() const noexcept { return !backlog_.empty(); }

  // ---- link_slices.cc

  // The slices that calls of this link wait for are at hand, or will never be.
  void on_slices(const ContentId& id, const std::optional<Error>& error);
  // By which number the peer calls that code; nothing when it never did.
  std::optional<uint32_t> number_of_its(const ContentId& id) const noexcept;
  // Asks the peer for slices that this node cannot run itself; SliceRequests hears the answer.
  void ask_for_slices(const ContentId& id, const TargetTriple& triple);
  // Answers such a question of the peer's; null: there are none to be had.
  void send_slices(uint32_t number, const ContentId& id, const Bundle* bundle, const TargetTriple& triple);

  // ---- link_compile.cc

  // A question to the peer, or the answer to one of its own; hangs up on one that does not take it.
  void post_compile(uint32_t what, ByteView body);
  void answer_compile(uint64_t token, const Result<Bytes>& object);
  // What calls of this link wait for was compiled, or will never be: they are taken up with the next receive().
  void on_compiled();

  // ---- link_receive.cc

  // Takes frames off the stream and runs them. How many. May throw std::bad_alloc.
  size_t receive();
  // The store is about to free this code.
  void forget(const target::Code& code) noexcept {
    numbers_.forget(code);
    if (passed_code_ == &code) passed_code_ = nullptr;
  }

  bool on_frame(const wire::Header& header, std::byte* body) override;
  void on_touched() override;
  void on_broken(std::string what) override;

  // ---- link_greeting.cc

  // What this node tells a peer of itself.
  static Bytes hello_of(const Node& node);
  // The peer's greeting. An error: the peer is not taken, and the caller tells it.
  Status accept_hello(ByteView body);
  // The peer is gone: once what it sent before has run (receive()), the link is lost with `reason`.
  void end(const Error& reason);
  // The end: everything that waits on this link fails with `reason`. Idempotent, and goes on where it was when memory
  // ran out: until then loss_is_told() is false.
  void lose(const Error& reason);
  bool loss_is_told() const noexcept { return loss_is_told_; }
  // Tells the peer why, closes the connection and loses the link.
  void hang_up(const Error& reason);
  void say_goodbye();
  // There is no memory for what the peer sends: the link ends, and the peer is told if that is possible.
  void end_for_memory() noexcept;

  // ----

  State state() const noexcept { return state_; }
  bool readable() const noexcept { return state_ == State::ready; }
  bool trusted() const noexcept { return trusted_; }  // may the peer run code here?
  // Calls with a token that came by this link and wait for code: shown with the instance of who asked.
  void each_call_parked(const std::function<void(uint64_t asker, uint64_t token)>& show) const;

  // Has the peer written something into our memory?
  bool has_frame() const noexcept { return in_->peek() != 0; }
  uint64_t mark() const noexcept { return mark_; }
  const Error& reason() const noexcept { return reason_; }  // why it was lost
  const wire::Hello& peer() const noexcept { return peer_; }
  const TargetTriple& peer_triple() const noexcept { return peer_triple_; }
  // "node 3 (name)", for messages.
  std::string peer_label() const;
  // The same, made once; stays when the link goes.
  const std::shared_ptr<const std::string>& shared_label();
  // Where the peer's connection comes from, without its port.
  std::string peer_host() const;
  transport::Connection& connection() const noexcept { return *connection_; }

  // Does it lead to who listens there? What a peer that connected says of its own address counts only where it comes from
  // that host.
  bool leads_to(std::string_view address) const noexcept;
  bool is_accepted() const noexcept { return !initiator_; }  // the peer connected to us

  uint32_t endpoints = 0;   // that the application holds: it stays until all are closed
  bool is_pending = false;  // the node comes back to it with the next poll

 private:
  friend class Node;
  using Parts = std::initializer_list<ByteView>;

  // Finds the header for a message that another link, or none, sent last. False: not now.
  bool prepare(source::Message& message) const noexcept;

  struct Queued;

  // link.cc
  bool try_post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) noexcept;
  Status queue(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts);
  Status post_at_once(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts);
  // Does a frame with so many bytes behind its header travel in pieces?
  bool is_large(size_t size) const noexcept { return size > out_->max_length(); }
  Status may_queue(size_t size);
  void enqueue(Queued item);
  bool drain(Queued& item) noexcept;
  Status post_when_possible(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts, Deadline deadline);
  Result<uint32_t> number_for(const Outgoing& call, bool& is_new);
  void withdraw(uint32_t number);
  Status send_now(const Outgoing& call, Deadline deadline);
  void update_open() noexcept;

  // link_slices.cc
  struct Held;
  Status hold(const Outgoing& call);
  Status hold_for_slices(const Outgoing& call);
  bool lacks_slices(const Bundle& bundle) const noexcept;
  bool may_leave(Held& call);
  void send_held();
  Status send_late(const Held& call, const wire::CallTicket* ticket, const wire::PackedRoute* route);
  bool on_slices_needed(uint32_t number, const wire::Need& need);
  bool on_slices_sent(uint32_t number, const wire::CodeBody& code);

  // link_compile.cc
  bool on_compile(uint32_t what, ByteView body);
  Status take_compile_job(const wire::CompileQuestion& question);

  // link_large.cc
  class Streaming;
  Status post_large(std::span<const ByteView> frame, Deadline deadline);
  Status post_while_read(std::span<const ByteView> frame);
  Status queue_rest(std::span<const ByteView> frame, size_t from);
  bool on_fragment(uint32_t mark, ByteView piece);
  bool on_whole(Assembly::Whole whole);
  bool on_large_reply(Assembly::Whole whole);
  bool refuse_whole(const Assembly::Whole& whole);

  // link_run.cc
  bool run(target::Code& code, uint8_t flags, std::byte* body, size_t length);
  bool on_short_token(size_t length);

  // link_receive.cc
  bool on_call(const wire::Header& header, std::byte* body);
  bool on_call_code(const wire::Header& header, ByteView body);
  bool on_code(const wire::Header& header, ByteView body);
  bool on_need(const wire::Header& header, ByteView body);
  void deny_code(uint32_t number, const ContentId& id);
  bool on_reply(ByteView body);
  bool on_barrier(const wire::Header& header, ByteView body);
  bool on_bye(ByteView body);
  bool on_notice(uint32_t what, ByteView body);
  void note_for_snapshots(const wire::Header& header, ByteView body);
  void show_call(const wire::Header& header, ByteView body,
                 const std::function<void(uint64_t asker, uint64_t token)>& show) const;
  LoadResult learn(uint32_t number, const wire::CodeBody& code);
  bool park_for_compiler(const wire::Header& header, ByteView body);
  bool means(uint32_t number, const ContentId& id);
  void note_unusable(uint32_t number, const Error& why);
  void refuse(const wire::Header& header, ByteView body, const Error& why);
  bool park(const wire::Header& header, ByteView body);
  bool is_late(const wire::Header& header, ByteView body, uint64_t since_ns) const noexcept;
  void ask_for(uint32_t number);
  bool check_call(const wire::Header& header);
  bool resume_parked();
  void note_failure(const wire::Reply& reply);

  // link_greeting.cc
  void answer_unrun(const wire::Header& header, ByteView body, const Error& reason);
  void write_bye(const Error& reason);

  static constexpr uint64_t closed_mark = ~uint64_t{0};  // no message is prepared for it
  Node& node_;
  State state_ = State::greeting;
  bool initiator_;
  bool trusted_ = false;  // may the peer run code here?
  bool loss_is_told_ = false;
  bool open_ = false;       // ready, and nothing is queued: frames may be written at once
  bool streaming_ = false;  // a large frame is being written piece by piece: nothing may come between
  size_t parked_bytes_ = 0;
  target::NumberTable numbers_;
  transport::InStream* in_;
  // What sending touches.
  alignas(64) transport::OutStream* out_;
  uint64_t open_mark_ = closed_mark;  // prepared_mark_ while open_
  uint32_t most_at_once_ = 0;         // bytes of a frame that may be written at once; 0 unless open_
  // What was last sent by its number alone, and that number. Its code, where that is held here: its id is two cache
  // lines away.
  const target::Code* passed_code_ = nullptr;
  uint32_t passed_number_ = source::CodeTable::none;
  ContentId passed_on_;
  uint64_t mark_;  // of this link among all of its node, ever; never 0
  uint64_t
      prepared_mark_;  // what messages that are prepared for this link have; another one once numbers were withdrawn
  std::unique_ptr<transport::Connection> connection_;
  Error reason_;
  std::optional<Error> ending_;  // why, while what came before is still to be run
  wire::Hello peer_;
  TargetTriple peer_triple_;
  std::shared_ptr<const std::string> label_;

  // Sending.
  source::CodeTable codes_;
  struct Held {
    Bundle bundle;
    uint32_t index;
    Bytes payload;
    std::optional<wire::CallTicket> ticket;
    std::optional<wire::PackedRoute> route;
    uint64_t since_ns;
    Charge charge;
    bool asked = false;  // for slices
    std::optional<Error> refused;
  };
  size_t held_bytes_ = 0;
  std::deque<Held> held_;  // calls that wait for the greeting, or for slices, and all calls behind them
  struct AskedSlices {
    uint32_t number;
    ContentId id;
  };
  std::optional<AskedSlices> asked_slices_;  // the peer has not answered yet
  // A frame that waits for room: all of it, or what is left of one that travels in pieces and its beginning.
  struct Queued {
    Bytes whole;
    Buffer rest;
    size_t sent = 0;  // of `rest`
    Charge charge;    // for `whole`
    size_t size() const noexcept { return rest ? rest.size() : whole.size(); }
  };
  std::deque<Queued> backlog_;
  size_t backlog_bytes_ = 0;
  uint64_t barriers_sent_ = 0;
  uint64_t barriers_passed_ = 0;
  std::optional<Error> first_failure_;
  uint64_t more_failures_ = 0;

  // Receiving.
  std::vector<uint64_t> meanings_;                // of numbers: the beginning of the content id each was bound to
  std::unordered_map<uint32_t, Error> unusable_;  // numbers whose code was refused, and why
  std::optional<uint32_t> awaited_;               // the number we asked for
  struct Parked {
    wire::Header header;
    Bytes body;
    uint64_t since_ns;
    Charge charge;
  };
  std::deque<Parked> parked_;        // calls that wait for code, and all frames that must stay behind them
  bool waits_for_compiler_ = false;  // what is parked first is the frame with code that is compiled elsewhere
  bool compiled_ = false;            // that has ended
  Assembly assembly_;
  Bytes code_copy_;  // of the last call with code: its memory is used again
  Bytes scratch_;    // payloads that need more alignment than a frame has
  uint64_t untold_failures_ = 0;
};

}  // namespace tc::node
