// SPDX-License-Identifier: Apache-2.0
//
// The cold half of the transport seam: who is connected, control messages, sleeping, loss. One Transport per
// node; the only folder that knows UCX stands behind it. `loopback` is the other one, for tests.
//
// Thread: all calls from the thread that drives the node, but for wake().
// Re-entry: events are delivered from inside progress() and connect() only, and their receivers must not call
// progress() or connect() again; sending is allowed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "transport/looking.h"
#include "transport/stream.h"

namespace tc::transport {

enum class Way : uint8_t { automatic = 0, ring = 1, am = 2, put = 3, loopback = 4 };
std::string_view way_name(Way way) noexcept;
Result<Way> parse_way(std::string_view name);  // "auto", "ring", "am", "put", "loopback"

// One peer. Owned by the node's link; destroying it forgets the peer without a word (close() says goodbye).
class Connection {
 public:
  static constexpr uint32_t no_index = ~uint32_t{0};

  virtual ~Connection() = default;

  // A small number, of this connection alone among those of its transport while it lives: for tables of the owner's, and
  // for Transport::put_alone(). no_index: there is none.
  virtual uint32_t index() const noexcept { return no_index; }

  // Frames to the peer; refuses to reserve until open_way() succeeded, and again once the peer is lost.
  virtual OutStream& out() noexcept = 0;
  // Frames from the peer.
  virtual InStream& in() noexcept = 0;

  // Sends one frame beside the streams (HELLO, CREDIT, BYE, wake): in order among themselves, never blocks,
  // copied at once. TC_ERR_DISCONNECTED when the peer is lost; TC_ERR_LIMIT when too many are queued.
  virtual Status send_control(ByteView frame) = 0;

  // What the peer needs to know to write to us by any way that `allowed` permits: travels in HELLO, opaque.
  virtual Result<Bytes> offer(Way allowed) = 0;
  // Chooses the way out, given the peer's offer and our wish. With Way::automatic: ring where the peer's memory
  // can be mapped (same host, same UCX), else am. A wish that cannot be had is TC_ERR_UNSUPPORTED.
  // The offer is hostile input: TC_ERR_MALFORMED.
  virtual Status open_way(Way wish, ByteView peer_offer) = 0;
  virtual Way way() const noexcept = 0;

  // "127.0.0.1:7001", for messages and for finding the peer again: of a peer that connected to us, what it says of itself.
  virtual std::string peer_address() const = 0;
  // Where the connection of a peer that connected to us comes from, as the system says: what trust may rest on.
  virtual std::string origin() const = 0;

  // Hands queued frames and control messages to the wire and starts to close; progress() finishes it. Nothing
  // more is delivered.
  virtual void close() noexcept = 0;

  // For the owner's use, to find its link from an event.
  void own(void* owner) noexcept { owner_ = owner; }
  void* owner() const noexcept { return owner_; }

 private:
  void* owner_ = nullptr;
};

class Events {
 public:
  // A peer connected to us. Until its first control frame nothing is known of it.
  virtual void on_accept(std::unique_ptr<Connection> connection) = 0;
  // A control frame came; `frame` is a private copy, valid during the call, of 8 bytes at least.
  virtual void on_control(Connection& connection, ByteView frame) = 0;
  // A call came, alone, while Pulse::at_once was set, and nothing else waits on its stream: it may be run now, and may
  // connect as well as send, but destroy no connection. From inside sleep() as well. `body` is a private copy, valid
  // during the call, at a multiple of 16. `index`: the connection's, which is cold and need not be touched. False: it was
  // not taken, and goes on its stream.
  virtual bool on_call(Connection& connection, uint32_t index, const wire::Header& header, std::byte* body) = 0;
  // In Transport::wait_for_messages(), after a call ran at once: true when there is no more to do than to wait for the next
  // one. Not asked after every call.
  virtual bool goes_on() noexcept { return false; }
  // The peer is gone (killed, closed, network). Comes once; afterwards the connection only waits to be destroyed.
  virtual void on_lost(Connection& connection, const Error& reason) = 0;

 protected:
  ~Events() = default;
};

class Transport {
 public:
  // `came` is the derived transport's: what each look touches shall not lie behind it.
  explicit Transport(Arrivals& arrivals) noexcept : came(arrivals) {}
  virtual ~Transport() = default;

  // Starts to accept peers on "ADDRESS:PORT" (port 0: any free one). Returns the address with the real port.
  virtual Result<std::string> listen(std::string_view address) = 0;
  // Starts to connect; returns at once. Whether the peer answers shows in on_control (its HELLO) or on_lost.
  virtual Result<std::unique_ptr<Connection>> connect(std::string_view address) = 0;

  // progress() may be left out, fifteen times of sixteen, while this says that nothing is urgent.
  Pulse pulse;
  // Who sent the frames that pulse.arrivals counts. The node clears it, and touches these links alone: all of them, with
  // more nodes than cores, would be cold and cost more than the frame.
  Arrivals& came;

  // Does what is due: completes sends, delivers events, flushes streams that hold committed frames. Returns
  // how much happened; 0 is "idle".
  virtual unsigned progress() noexcept = 0;

  // Waits for messages and for nothing else, by less code and memory than progress() and sleep(): with more nodes than cores
  // they are cold. Seen::something: some came, and Events::goes_on() said no, or something else is due, or it is time to see;
  // call progress(). Otherwise why `looking` ended.
  virtual Seen wait_for_messages(Looking& looking) noexcept {
    (void)looking;
    return Seen::something;
  }

  // OutStream::put_alone() of the connection with that index, by less memory. False: not now, take the stream's, which
  // makes this one possible again where it can be.
  virtual bool put_alone(uint32_t index, uint64_t header, std::initializer_list<ByteView> body) noexcept {
    (void)index, (void)header, (void)body;
    return false;
  }

  // Sends what was gathered. Else it would leave with the next progress().
  virtual void flush() noexcept {}

  // Sleeps until a frame, an event, wake() or the deadline; costs no CPU. May return early. Frames that came
  // before or while falling asleep are never slept over. True when time alone ended it.
  virtual bool sleep(Deadline deadline) noexcept = 0;
  // Ends a sleep() of the node's thread, now or the next one. From any thread.
  virtual void wake() noexcept = 0;

  // Version of what carries us, "1.13.1"; compared at HELLO by ways that need equal versions.
  virtual std::string version() const = 0;
  virtual std::string name() const = 0;  // "ucx" or "loopback"
};

struct UcxOptions {
  size_t ring_bytes = 256 * 1024;     // per peer and direction, power of two
  size_t batch_bytes = 16 * 1024;     // frames coalesced into one active message or put
  size_t window_bytes = 1024 * 1024;  // unconsumed bytes on the way to a peer by am
  std::string tls;                    // empty: UCX_TLS and UCX's own defaults
  // Lets peers, and us, use the way `put`. Not for peers that are not trusted: where the network has no puts of its
  // own (TCP), UCX emulates them, writes to whatever address the peer names, and aborts the process when the peer
  // dies at the wrong moment. Without it UCX refuses all puts.
  bool allow_put = false;
};
// `events` must outlive the transport. UCX reads its own environment (UCX_TLS, UCX_NET_DEVICES, ...).
Result<std::unique_ptr<Transport>> make_ucx_transport(const UcxOptions& options, Events& events);

}  // namespace tc::transport
