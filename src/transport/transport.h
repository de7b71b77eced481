// SPDX-License-Identifier: Apache-2.0
//
// The seam between a node and its network, as far as it is not about single frames (stream.h):
// connections, greetings, sleeping, loss. One Transport per node. network/ has the one that nodes use: shared rings,
// sockets, and UCX if the operator chooses it. testing/simulated/ is a network inside one process, for tests.
//
// Thread: the node's, for all calls but wake().
// Re-entry: events are delivered from inside progress() and sleep() only. Their receivers may send and connect. They
// must not call progress() or sleep(), nor destroy a connection other than the one that on_accept() gives them. If a
// receiver throws std::bad_alloc, the connection of that event is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "transport/stream.h"
#include "trust/key_pair.h"

namespace tc::transport {

// Where a connection comes from and who the peer is: as the kernel reports it and as the handshake proved, never as the
// peer claims.
struct Origin {
  std::string host;                     // "10.0.0.7"; "127.0.0.1" for a peer on this host
  std::string text;                     // for messages: "10.0.0.7:41234", "process 4711 of user 1000"
  bool is_local = false;                // it is known by a Unix socket
  bool is_this_host = false;            // TCP, with an address of this host, where any of its users may listen
  bool same_user = false;               // a process of this host, run by our own user; known of Unix sockets alone
  std::string_view why_not_same_user;   // of a process with our uid that is not taken for our user's; static text
  bool on_trusted_network = false;      // TCP from a network that the operator trusts, plain or encrypted
  std::optional<trust::PublicKey> key;  // of an encrypted connection
  bool is_key_temporary = false;        // it lasts only as long as the peer's process
  uint64_t handshake_ns = 0;  // of an encrypted connection that was accepted: from then until the peer had greeted
};

// Bytes of frames, with what the transport puts between them, that passed a connection since its beginning; and those that were
// committed and have not left, or were not read in shared memory. 0 where a transport does not know.
struct Traffic {
  uint64_t received = 0, sent = 0, waiting = 0;
};

// An ordered connection to one peer, in both directions. Owned by the node's link, which destroys it before the
// transport. Destroying it drops what was not sent; close() first sends what was committed.
class Connection {
 public:
  virtual ~Connection() = default;

  // Frames to the peer: none can be reserved before open(), nor once the peer is lost. The streams of a connection that
  // greets may be others than those of the same connection once it is open: ask for them after open().
  virtual OutStream& out() noexcept = 0;
  // Frames from the peer.
  virtual InStream& in() noexcept = 0;
  // Known once the peer has greeted. True: the peer writes into memory of ours, so in().peek() must be called in every
  // poll. False: Events::on_frames() reports new frames.
  virtual bool is_polled() const noexcept = 0;

  // Accepts the peer's greeting: frames may pass. On the accepting side, `hello` is sent to the peer first. The
  // connecting side has sent its own with Transport::connect(). Errors: TC_ERR_UNSUPPORTED, TC_ERR_NO_MEMORY.
  virtual Status open(ByteView hello) = 0;
  // Instead of open(): sends the peer the reason, and closes.
  virtual void refuse(const Error& why) noexcept = 0;
  // Sends what was committed and ends the connection. The transport does the sending in the background, while it is polled
  // and in Transport::finish(), as long as the peer reads (closing_sockets.h). Nothing more is received.
  virtual void close() noexcept = 0;
  // Ends the connection at once, for a peer that has disconnected and reads no more.
  virtual void drop() noexcept = 0;

  // True: receive nothing more until set_paused(false), so that flow control slows the peer. What was received before can
  // be read.
  virtual void set_paused(bool paused) noexcept { (void)paused; }

  // "shm", "tcp", "ucx", ...; empty while that is open, because the name of the peer's host is being resolved.
  virtual std::string_view transport() const noexcept = 0;
  // "127.0.0.1:7001", for messages: the address that we connected to, or that the peer comes from.
  virtual const std::string& peer_address() const noexcept = 0;
  virtual const Origin& origin() const noexcept = 0;
  // Also of one that has ended.
  virtual Traffic traffic() const noexcept { return {}; }

  // A pointer of the owner's, to find its link from an event: the connection in an event may be another object, which
  // does the work for the one that connect() returned. Set it before the next progress().
  void set_owner(void* owner) noexcept { owner_ = owner; }
  void* owner() const noexcept { return owner_; }

 private:
  void* owner_ = nullptr;
};

class Events {
 public:
  // Those up to on_frames() may throw std::bad_alloc, which loses the connection; the others may not throw.

  // May this peer connect? Called once the transport knows who it is: of an encrypted connection after the handshake, of
  // others before any byte of the peer is read. The peer is sent the error.
  virtual Status may_connect(const Origin& origin) = 0;
  // We connected to `address`, and this is who answered there: is it the one we meant? Called before anything of ours is
  // sent to it. An error ends the connection: on_lost().
  virtual Status is_expected(std::string_view address, const Origin& origin) {
    return (void)address, (void)origin, Status{};
  }
  // A peer has connected and greeted. The receiver calls open() or refuse(), now or later.
  virtual void on_accept(std::unique_ptr<Connection> connection, ByteView hello) = 0;
  // The peer that we connected to has greeted. The receiver calls open() or close().
  virtual void on_greeting(Connection& connection, ByteView hello) = 0;
  // Frames have come: take them off connection.in(). This is not repeated for frames that the receiver leaves there.
  virtual void on_frames(Connection& connection) = 0;
  // The peer is gone (killed, closed, network), or has refused us. Comes once, after the frames that the peer sent before:
  // they came with on_frames(), and what was left there can still be read. A peer that reads no more is not gone: frames
  // to it are thrown away until everything that it sent has come.
  virtual void on_lost(Connection& connection, const Error& reason) = 0;
  // A peer was refused before it had greeted: its origin, and the reason. Hostile peers can make this come often.
  virtual void on_refused(const std::string& origin, const Error& why) { (void)origin, (void)why; }
  // Something works less well than it could, for example without shared memory; or bytes that a closed connection had
  // committed are lost.
  virtual void on_warning(const std::string& message) { (void)message; }

 protected:
  ~Events() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Starts to accept peers on an address (transport/address.h; port 0: any free one). Returns the address with the real
  // port. TC_ERR_INVALID, TC_ERR_IO.
  virtual Result<std::string> listen(std::string_view address) = 0;
  // Starts to connect and to send `hello`; returns at once. The result comes as on_greeting() or on_lost(): also when the
  // name of a host cannot be resolved (TC_ERR_NOT_FOUND, TC_ERR_IO), or not in time (TC_ERR_TIMEOUT). Fails at once with
  // TC_ERR_INVALID, TC_ERR_LIMIT, TC_ERR_UNSUPPORTED (the transport that was chosen is not available).
  virtual Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) = 0;

  // Would connect() ask a name server for this address first?
  virtual bool is_by_name(std::string_view address) const { return (void)address, false; }

  PollState poll_state;

  // Does what is due: sends what was committed, receives, delivers events. Returns how much happened; 0: nothing. While
  // `poll_state.urgent` is false, fifteen of sixteen calls may be left out.
  virtual unsigned progress() noexcept = 0;
  // Sends what was committed.
  virtual void flush() noexcept = 0;
  // Before the transport is destroyed, which drops what was not sent: waits until the peers of closed connections have
  // taken it, as long as they read (closing_sockets.h). Delivers events as progress() does; on_warning() tells what was lost.
  virtual void finish() noexcept {}
  // Gives back to the system what large frames have used, and nothing has since a second. Call it now and then, and before
  // a sleep. Returns when there is more to give back.
  virtual uint64_t trim(uint64_t now_ns) noexcept { return (void)now_ns, UINT64_MAX; }

  // Sleeps until something comes, wake() or the deadline, and delivers what came; uses no CPU. May return early. Frames
  // that arrive before or while it falls asleep end the sleep.
  virtual void sleep(Deadline deadline) noexcept = 0;
  // For a program that waits by itself, on descriptor(), instead of sleep(). True: there is nothing to do now; the
  // descriptor becomes readable when something comes, or `deadline`, which may be brought forward, passes, and the next
  // progress() delivers it. False: something is to be done first; poll and arm again. Nobody calls sleep() meanwhile.
  virtual bool arm(Deadline& deadline) noexcept { return (void)deadline, false; }
  // What to wait on after arm(): for reading, and for nothing else. The transport's. -1: this transport has none.
  virtual int descriptor() const noexcept { return -1; }

  // Ends a sleep() of the node's thread, now or the next one. From any thread, and from signal handlers.
  virtual void wake() noexcept = 0;
};

}  // namespace tc::transport
