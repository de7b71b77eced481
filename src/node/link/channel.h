// SPDX-License-Identifier: Apache-2.0
//
// The ordered connection to one peer, below calls and code: greeting, frames that leave now or wait for room, frames that
// travel in pieces, disconnecting.
//
// A lost channel only sets a flag (state(), PendingWork::lost_links). Links fails what waits on it later, with a poll of its
// own. So no container changes under a loop that sends a frame.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/log_format.h"
#include "base/no_memory.h"
#include "node/common.h"
#include "transport/transport.h"
#include "wire/frame.h"
#include "wire/target_triple.h"

namespace tc::node {

// Numbers that are never used twice at one node, from 1: of links, and of versions of what a peer holds.
class LinkIds {
 public:
  uint64_t next() noexcept { return ++last_; }

 private:
  uint64_t last_ = 0;
};

// How a part of a node waits for something while the node goes on. The node implements it, because waiting means polling, and
// what polls is above the channels.
class Waiter {
 public:
  // Not from inside the node's polling: what is waited for would have to be brought by the same polling.
  virtual bool may_wait() const noexcept = 0;
  // Polls until `done` or the deadline; true when done. The node sleeps in between, so an event must announce it.
  virtual bool wait_until(Deadline deadline, FunctionRef<bool()> done) = 0;
  // The same for what no event announces: room that a peer makes in shared memory. Tests `done` after every poll.
  virtual bool wait_for_room(Deadline deadline, FunctionRef<bool()> done) = 0;

 protected:
  ~Waiter() = default;
};

struct ChannelServices {
  const Common& common;
  Waiter& waiter;
  LinkIds& ids;
};

class Channel {
 public:
  enum class State : uint8_t { greeting, ready, lost };
  using Parts = std::initializer_list<ByteView>;
  // A frame that was accepted and never left; a large one by its beginning alone, unless the peer has not greeted yet.
  struct Unsent {
    wire::FrameHeader header;
    ByteView body;
  };

  // `initiator`: we connected, so we greet first.
  Channel(const ChannelServices& services, std::unique_ptr<transport::Connection> connection, bool initiator);

  // ---- The fast path of sending (call_sender.h)

  transport::OutStream& out() noexcept { return *out_; }
  // What a message must have been prepared for, so that it may be written now. Another one once numbers were withdrawn,
  // and one that no message has while frames may not be written at once.
  uint64_t open_version() const noexcept { return open_version_; }
  uint64_t version() const noexcept { return version_; }
  // May a frame of that size leave now, as far as the peer and the stream take it? A longer one never goes in one frame.
  bool may_leave(size_t size) const noexcept { return size < at_once_below_; }
  // Where a frame of that size may be built now; null: post() writes or queues it.
  std::byte* reserve(size_t size) noexcept { return size < at_once_below_ ? out_->reserve(size) : nullptr; }

  // ---- Frames that leave now, and those that wait for room (the backlog)

  // Sends a frame now or queues it; never waits. TC_ERR_LIMIT: too much waits. The reason, when the peer is lost.
  Status post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts);
  // The same for frames of which none may be missing: a peer that does not take it is disconnected.
  void post_or_disconnect(wire::Kind kind, uint8_t flags, uint32_t number, ByteView body);
  // The same, but waits for room until `deadline` where waiting is possible. TC_ERR_BUSY: nothing was accepted.
  Status post_in_time(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts, Deadline deadline);
  // Moves queued frames on, as far as there is room.
  void drain_backlog();
  // Before the first frame leaves: what `replace` returns, a whole frame, takes the place of a queued one.
  void replace_queued(FunctionRef<std::optional<Bytes>(const Unsent&)> replace);
  bool has_backlog() const noexcept { return !backlog_.empty(); }
  size_t backlog_bytes() const noexcept { return backlog_bytes_; }
  // So much waits for room that no more of the peer's calls are to be answered before some of it has left (call_receiver.h).
  bool is_behind() const noexcept { return is_behind_; }
  // Grows as long as the peer makes room for what waits for it, be it in the backlog or with a sender.
  uint64_t drained_bytes() const noexcept { return drained_bytes_; }
  // The peer is gone and reads no more: what waits for it holds nothing up any more.
  void expect_end() noexcept {
    expects_end_ = true;
    changed();
  }
  // Calls wait in front of the channel: until they have left, none may be written past them.
  void set_calls_wait(bool wait) noexcept {
    calls_wait_ = wait;
    changed();
  }
  // Messages that were prepared before are prepared anew.
  void renew_version() noexcept {
    version_ = services_.ids.next();
    changed();
  }

  // Counts bytes that wait here for the peer, or of it, against its share and `message-memory`. TC_ERR_LIMIT.
  Status charge(Charge& charge, size_t bytes) const { return services_.common.charge(charge, bytes, share_); }
  // What the peer may take of `message-memory` (peer_shares.h).
  void set_share(std::shared_ptr<MemoryBudget> share) noexcept { share_ = std::move(share); }

  // ---- Its beginning and its end

  // The peer's greeting. `own`: ours, for a peer that connected to us. An error: the peer is not taken.
  Status accept_greeting(ByteView greeting, ByteView own);
  // Tells the peer why, if that is possible, and closes the connection. Only the first reason counts.
  void disconnect(const Error& reason) noexcept;
  // The same for a peer that breaks the protocol; `what` has the values. Returns false, for frame handlers.
  bool disconnect_for(const std::string& what);
  // In good order: the peer is told that nothing is wrong.
  void close() noexcept { close(error_in_any_case(TC_ERR_CLOSED, "the endpoint was closed here")); }
  void close(const Error& reason) noexcept;
  // Tells the peer, which accepted the connection, that this side has no use for it any more. Frames pass as before, until
  // the peer ends the connection: only it knows when its side has no use for it either.
  void release() noexcept;
  bool is_released() const noexcept { return is_released_; }
  // The peer is gone, or reads no more.
  void end(const Error& reason) noexcept;

  State state() const noexcept { return state_; }
  bool is_ready() const noexcept { return state_ == State::ready; }
  bool is_lost() const noexcept { return state_ == State::lost; }
  const Error& reason() const noexcept { return reason_; }  // why it was lost
  uint64_t id() const noexcept { return id_; }
  bool is_accepted() const noexcept { return !initiator_; }  // the peer connected to us
  transport::Connection& connection() const noexcept { return *connection_; }
  const transport::Origin& origin() const noexcept { return connection_->origin(); }
  const wire::Hello& peer() const noexcept { return peer_; }
  const TargetTriple& peer_triple() const noexcept { return peer_triple_; }
  // "node 3 (name)"; "node at 10.0.0.7:7001 (name)" without a number; "client name" when it does not listen. For messages.
  std::string peer_label() const;
  // The same of a peer that has greeted, for a signal's handler.
  std::string_view label() const noexcept { return label_ != nullptr ? std::string_view(*label_) : std::string_view(); }
  // The same, made once; stays when the channel goes.
  const std::shared_ptr<const std::string>& shared_label();
  // Does it lead to the node that listens there? What a peer says of its own address counts only where it proves a key
  // that belongs there, and one that connected must come from that host.
  bool leads_to(std::string_view address) const noexcept;
  // Does the peer prove a key that belongs where it says that it listens?
  bool is_proven() const noexcept { return proves(peer_.address) || is_connected_to(peer_.address); }
  // Is the address that the peer says it listens at its own: on the host that it comes from, or proved by its key? Never a
  // loopback address, which is another host's elsewhere.
  bool is_at_own_address() const noexcept;
  // What the peer proves of itself fits the address that it says it listens at (Authority::may_stand_for()).
  void set_stands_for_address(bool does) noexcept { stands_for_address_ = does; }

  // Of a lost channel: the first of its queue. Empty when there is none.
  std::optional<Unsent> unsent() const noexcept;
  void drop_unsent() noexcept { backlog_.pop_front(); }
  void each_unsent(FunctionRef<void(const Unsent&)> show) const;

 private:
  // A frame that waits for room: all of it, or what is left of one that travels in pieces and its beginning.
  struct Queued {
    Bytes whole;
    PooledBuffer rest;
    size_t sent = 0;  // of `rest`
    Charge charge;    // for `whole`, or of the peer's share for `rest`
    size_t size() const noexcept { return rest ? rest.size() : whole.size(); }
  };
  class Streaming;

  bool is_connected_to(std::string_view address) const noexcept;
  bool proves(std::string_view address) const noexcept;
  void changed() noexcept;
  void lose(const Error& reason) noexcept;
  void write_disconnect(const Error& reason) noexcept;
  static Unsent unsent_of(const Queued& queued) noexcept;
  // Does a frame with so many bytes behind its header travel in pieces?
  bool is_large(size_t size) const noexcept { return size > out_->max_length(); }
  bool try_post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) noexcept;
  Status may_queue(size_t size) const;
  Status queue(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts);
  void enqueue(Queued item);
  bool drain(Queued& item) noexcept;
  Error no_room(size_t bytes) const;
  size_t write(std::span<const ByteView> frame, size_t from) noexcept;
  Status post_large(std::span<const ByteView> frame, Deadline deadline);
  Status post_while_read(std::span<const ByteView> frame);
  Result<Queued> copy_from(std::span<const ByteView> frame, size_t from);
  Status queue_large(std::span<const ByteView> frame);
  Status keep_rest(std::span<const ByteView> frame, size_t from);

  static constexpr uint64_t closed_version = ~uint64_t{0};  // no message is prepared for it

  // What sending reads, on one cache line.
  alignas(64) transport::OutStream* out_;
  uint64_t open_version_ = closed_version;  // version_ while open_
  uint64_t version_;
  // Frames of fewer bytes may be written at once. 0 unless open_: then not even an empty one may.
  uint32_t at_once_below_ = 0;
  State state_ = State::greeting;
  bool open_ = false;  // ready, and nothing is queued: frames may be written at once
  bool calls_wait_ = false;
  bool stands_for_address_ = false;
  bool is_released_ = false;
  bool is_behind_ = false;  // more than behind_bytes_ wait
  bool streaming_ = false;  // a large frame is being written piece by piece: others queue
  bool mid_frame_ = false;  // some of its pieces have left: the rest must leave before anything else does
  bool expects_end_ = false;
  const bool initiator_;

  const uint64_t id_;
  const ChannelServices services_;
  std::unique_ptr<transport::Connection> connection_;
  Error reason_;
  wire::Hello peer_;
  TargetTriple peer_triple_;
  std::shared_ptr<const std::string> label_;
  std::shared_ptr<MemoryBudget> share_;
  std::deque<Queued> backlog_;
  size_t backlog_bytes_ = 0;
  const size_t behind_bytes_;
  uint64_t drained_bytes_ = 0;
};

// While it lives, what this thread logs is about the link of that channel, and about that code where it is given.
class AboutLink {
 public:
  explicit AboutLink(const Channel& channel, const LogFields& code = {});

 private:
  const std::string peer_, key_;
  const LogContext context_;
};

}  // namespace tc::node
