// SPDX-License-Identifier: Apache-2.0
//
// What all connections between processes have in common: a socket on which the two sides greet each other. It stays
// open, whatever carries the frames. When the peer dies, the kernel closes it, and so the loss is noticed.
//
//     connecting -> handshake -> greeting -> greeted -> open -> ended
//
// A name may have several addresses. While one does not answer, the next one is tried beside it every 250 ms (RFC 8305), and
// the first that is connected is used. If it then says nothing, each other address gets its part of the time.
//
// The first three are stages of the side that connects. There is a handshake only when the connection is encrypted. Only
// after it the owner is asked whether the peer is the expected one, and is then sent our greeting.
//
// A loss can be found in the middle of a send. So lose() only records it, and the transport delivers it afterwards with
// deliver_loss().
//
// Thread: the node's.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "transport/address.h"
#include "transport/greeting.h"
#include "transport/handshake.h"
#include "transport/hub.h"

namespace tc::transport {

class SocketConnection : public Connection, public Watcher, private Handshake::Owner {
 public:
  static constexpr uint64_t greeting_ns = 10'000'000'000;  // for the peer's answer, from Transport::connect() on

  ~SocketConnection() override;
  SocketConnection(const SocketConnection&) = delete;
  SocketConnection& operator=(const SocketConnection&) = delete;

  void close() noexcept override;
  void drop() noexcept override { end_silently(); }
  void refuse(const Error& why) noexcept override;
  Status open(ByteView hello) override;
  const std::string& peer_address() const noexcept override { return address_; }
  const Origin& origin() const noexcept override { return origin_; }

  // For the transport. Delivers a recorded loss to the owner, once; true when there was one.
  bool deliver_loss() noexcept;
  // Delivers what came together with the greeting: the socket does not tell of it again.
  void deliver_leftover() noexcept;
  // Loses a peer that has not greeted in time. Of an open connection: on_deadline().
  void check_deadline(uint64_t now) noexcept;
  // Leaves the peer less time: of it some was needed to find the peer's addresses.
  void must_greet_by(uint64_t deadline_ns) noexcept {
    greeting_deadline_ns_ = std::min(greeting_deadline_ns_, deadline_ns);
  }
  // Until when the peer must greet, or what else the connection waits for must come; 0: it waits for nothing.
  uint64_t greeting_deadline_ns() const noexcept {
    return next_address_ns_ == 0 ? greeting_deadline_ns_ : std::min(next_address_ns_, greeting_deadline_ns_);
  }
  bool is_open() const noexcept { return stage_ == Stage::open; }
  // Has a frame come?
  bool has_frames() noexcept { return is_open() && in().peek() != 0; }

  void on_ready(uint32_t events) noexcept final;

 protected:
  enum class Stage : uint8_t { connecting, handshake, greeting, greeted, open, ended };

  // Of the side that connects. `socket` is connecting; if that fails, `others` are tried.
  SocketConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others);
  // Of the side that accepted; the peer has greeted.
  SocketConnection(Hub& hub, SocketStream stream, Origin origin);

  // Call once, after the constructor. The connecting side will send its greeting; `attached`: with this descriptor, which
  // must stay open until open_streams().
  Status start_greeting(ByteView hello, int attached = -1);
  Status start_accepted();

  // The peer has answered our greeting.
  virtual Status on_greeted(Greeting& greeting) { return (void)greeting, Status{}; }
  // The details in our greeting: what the peer must know for this transport.
  virtual Bytes our_details() { return {}; }
  virtual Status open_streams() = 0;
  // Stops sending and receiving; frames that have come stay readable.
  virtual void shut_streams() noexcept = 0;
  // Committed bytes that were not sent, once the streams are shut.
  virtual Bytes unsent() { return {}; }
  // The owner has closed: sends the rest and then the end, in the background. May take the socket away.
  virtual void hand_over(Bytes unsent);
  // Events of the socket while open.
  virtual void on_socket(uint32_t events) = 0;

  void lose(Error reason) noexcept;
  // There was no memory to receive from the peer.
  void lose_without_memory() noexcept { lose(Error{TC_ERR_NO_MEMORY, "no memory"}); }  // short: it allocates nothing
  void watch(uint32_t events) noexcept;
  // The end of a socket is an event whatever is watched: until it may be read, the socket is not watched at all.
  void stop_watching() noexcept { hub_.poller.remove(stream_.socket()); }
  void resume_watching() noexcept { (void)hub_.poller.add(stream_.socket(), *this, watched_); }
  // An open connection: on_deadline() comes then; 0: never.
  void set_deadline(uint64_t at_ns) noexcept {
    greeting_deadline_ns_ = at_ns;
    hub_.mark_changed();
  }
  virtual void on_deadline() noexcept {}
  void deliver_frames() { hub_.events.on_frames(*this); }

  Hub& hub_;
  SocketStream stream_;
  std::string address_;
  Origin origin_;

 private:
  Bytes our_greeting(ByteView hello);
  void continue_connecting();
  void on_handshake(Status result) noexcept override;
  void watch_for_handshake(uint32_t events) noexcept override { watch(events); }
  void begin_greeting();
  void continue_greeting();
  void handle_greeting();
  bool take_connected();
  bool try_next_address(bool beside_this_one);
  void drop_slower() noexcept;
  void end_silently() noexcept;
  void end() noexcept;

  Stage stage_;
  bool loss_delivered_ = false;
  const bool accepted_;
  uint32_t watched_ = 0;
  uint64_t greeting_deadline_ns_ = 0;
  std::optional<Error> reason_;
  std::vector<SocketAddress> others_;  // not tried yet
  std::vector<Fd> slower_;             // sockets that connect beside the one of stream_
  uint64_t next_address_ns_ = 0;       // when the next of others_ is tried; 0: when this one fails
  Bytes hello_;                        // for our greeting
  int attached_ = -1;
  std::optional<Handshake> handshake_;
  std::optional<Greeter> greeter_;  // until both sides have greeted
};

}  // namespace tc::transport
