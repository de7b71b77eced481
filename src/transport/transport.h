// SPDX-License-Identifier: Apache-2.0
//
// The cold half of the transport seam: who is connected, greetings, sleeping, loss. One Transport per node.
// network/ is the one that nodes use: shared rings, sockets, and UCX where the operator wants it. simulated/ is a network
// inside one process, for tests.
//
// Thread: all calls from the thread that drives the node, but for wake().
// Re-entry: events are delivered from inside progress() and sleep() only. Their receivers may send and connect; they must
// not call progress() or sleep(), nor destroy a connection other than the one that on_accept() gives them. What they throw
// for want of memory costs the connection that the event is about.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "transport/stream.h"

namespace tc::transport {

// Where a connection comes from, as the system says and never as the peer says.
struct Origin {
  std::string host;        // "10.0.0.7"; "127.0.0.1" for a peer on this host
  std::string text;        // for messages: "10.0.0.7:41234", "process 4711 on this host"
  bool same_user = false;  // a process of this host, run by our own user
};

// The ordered way to one peer and back. Owned by the node's link, which destroys it before the transport. Destroying it
// ends the connection without a word; close() first lets what was committed arrive.
class Connection {
 public:
  virtual ~Connection() = default;

  // Frames to the peer: none can be reserved before open(), nor once the peer is lost.
  virtual OutStream& out() noexcept = 0;
  // Frames from the peer.
  virtual InStream& in() noexcept = 0;
  // The peer writes into memory of ours: look at in().peek() with every poll. Else Events::on_frames() tells.
  virtual bool is_polled() const noexcept = 0;

  // The peer's greeting was accepted: frames may pass. On the side that was connected to, `hello` is told to the peer
  // first; on the other one it was told by Transport::connect(). Errors: TC_ERR_UNSUPPORTED, TC_ERR_NO_MEMORY.
  virtual Status open(ByteView hello) = 0;
  // Instead of open(): tells the peer why it is refused, and closes.
  virtual void refuse(const Error& why) noexcept = 0;
  // Sends what was committed and ends; the transport finishes it within a second. Nothing more is delivered.
  virtual void close() noexcept = 0;
  // Ends at once, for a peer that has said goodbye and reads no more.
  virtual void drop() noexcept = 0;

  // "shm", "tcp", "ucx", ...
  virtual std::string_view transport() const noexcept = 0;
  // "127.0.0.1:7001", for messages: where we connected to, or where the peer comes from.
  virtual const std::string& peer_address() const noexcept = 0;
  virtual const Origin& origin() const noexcept = 0;

  // For the owner's use, to find its link from an event.
  void own(void* owner) noexcept { owner_ = owner; }
  void* owner() const noexcept { return owner_; }

 private:
  void* owner_ = nullptr;
};

class Events {
 public:
  // The first four may throw std::bad_alloc, which costs the connection; the others may not throw.
  // May somebody from there connect? Asked before anything that a stranger says is read. The error is told to him.
  virtual Status may_connect(const Origin& origin) = 0;
  // A peer connected to us and greeted. The receiver calls open() or refuse(), now or later.
  virtual void on_accept(std::unique_ptr<Connection> connection, ByteView hello) = 0;
  // The peer that we connected to has greeted. The receiver calls open() or close().
  virtual void on_greeting(Connection& connection, ByteView hello) = 0;
  // Frames have come: take them off connection.in(). What is left is the receiver's to come back to.
  virtual void on_frames(Connection& connection) = 0;
  // The peer is gone (killed, closed, network), or refused us. Comes once. Frames that came before can still be read.
  virtual void on_lost(Connection& connection, const Error& reason) = 0;
  // Somebody who has not greeted was turned away: where from, and why. Strangers can make this come often.
  virtual void on_refused(const std::string& who, const Error& why) { (void)who, (void)why; }
  // Something is worse than it could be, and goes on.
  virtual void on_warning(const std::string& what) { (void)what; }

 protected:
  ~Events() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Starts to accept peers on an address (transport/address.h; port 0: any free one). Returns the address with the real
  // port. TC_ERR_INVALID, TC_ERR_IO.
  virtual Result<std::string> listen(std::string_view address) = 0;
  // Starts to connect and to tell `hello`; returns at once. Whether the peer answers shows in on_greeting() or on_lost().
  // TC_ERR_INVALID, TC_ERR_NOT_FOUND, TC_ERR_UNSUPPORTED (the transport that was asked for cannot be had).
  virtual Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) = 0;

  Pulse pulse;

  // Does what is due: sends what was committed, takes in what has come, delivers events. Returns how much happened; 0 is
  // "idle". While `pulse.urgent` is false it may be left out fifteen times of sixteen.
  virtual unsigned progress() noexcept = 0;
  // Sends what was committed.
  virtual void flush() noexcept = 0;

  // Sleeps until something comes, wake() or the deadline, and delivers what came; costs no CPU. May return early. Frames
  // that came before or while falling asleep are never slept over.
  virtual void sleep(Deadline deadline) noexcept = 0;
  // Ends a sleep() of the node's thread, now or the next one. From any thread, and from signal handlers.
  virtual void wake() noexcept = 0;
};

}  // namespace tc::transport
