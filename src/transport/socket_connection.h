// SPDX-License-Identifier: Apache-2.0
//
// What all connections between processes have in common: a socket of ours on which the two sides greet each other, and
// by whose end a death is noticed, whatever carries the frames.
//
//     greeting -> greeted -> open -> over
//
// Thread: the node's.
#pragma once

#include <optional>
#include <vector>

#include "transport/address.h"
#include "transport/greeter.h"
#include "transport/hub.h"

namespace tc::transport {

class SocketConnection : public Connection, public Watcher {
 public:
  ~SocketConnection() override;
  SocketConnection(const SocketConnection&) = delete;
  SocketConnection& operator=(const SocketConnection&) = delete;

  void close() noexcept override;
  void drop() noexcept override { leave(); }
  void refuse(const Error& why) noexcept override;
  Status open(ByteView hello) override;
  const std::string& peer_address() const noexcept override { return address_; }
  const Origin& origin() const noexcept override { return origin_; }

  // For the transport. Delivers the loss if there is one that the owner was not told of; true when there was.
  bool deliver_loss() noexcept;
  // Gives up on a peer that does not greet.
  void check_time(uint64_t now) noexcept;
  // Until when it has to greet; 0: it has.
  uint64_t gives_up_at_ns() const noexcept { return give_up_at_ns_; }
  bool is_open() const noexcept { return stage_ == Stage::open; }
  // Is a whole frame, or something else that its owner must see, in sight?
  bool has_frames() noexcept { return is_open() && in().peek() != 0; }

  void on_ready(uint32_t events) noexcept final;

 protected:
  enum class Stage : uint8_t { greeting, greeted, open, over };

  // Of the side that connects: `socket` connects to the first of `addresses`, and when nobody is there, others are tried.
  SocketConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others);
  // Of the side that accepted a peer that has greeted.
  SocketConnection(Hub& hub, Fd socket, Origin origin);

  // Once made. The side that connects greets: `attached` is a descriptor that goes along.
  Status start_greeting(ByteView hello, int attached = -1);
  Status start_accepted();

  // The peer has greeted us back.
  virtual Status on_greeted(Greeting& greeting) { return (void)greeting, Status{}; }
  // The details that the peer is told when we greet it: what it has to know of the transport.
  virtual Bytes our_details() { return {}; }
  virtual Status open_streams() = 0;
  // Nothing is sent or received any more; frames that have come stay readable.
  virtual void shut_streams() noexcept = 0;
  // What was committed and has not left, once the streams are shut.
  virtual Bytes unsent() { return {}; }
  // The owner has closed: sends the rest, and lets the peer see the end. May take the socket away.
  virtual void part(Bytes unsent);
  // While open.
  virtual void on_socket(uint32_t events) = 0;

  void lose(Error reason) noexcept;
  // There was no memory for what it sends.
  void lose_for_memory() noexcept { lose(Error{TC_ERR_NO_MEMORY, "no memory"}); }  // short: it allocates nothing
  void watch(uint32_t events) noexcept;
  // Tells the owner of frames that came.
  void deliver_frames() { hub_.events.on_frames(*this); }

  Hub& hub_;
  Fd socket_;
  std::string address_;
  Origin origin_;

 private:
  Bytes our_greeting(ByteView hello);
  void go_on_greeting();
  void hear_greeting();
  bool try_next_address();
  void leave() noexcept;
  void end() noexcept;

  Stage stage_;
  bool loss_told_ = false;
  const bool accepted_;
  uint32_t watched_ = 0;
  uint64_t give_up_at_ns_ = 0;
  std::optional<Error> reason_;
  std::optional<Greeter> greeter_;  // until both sides have greeted
  std::vector<SocketAddress> others_;
  Bytes greeting_;  // to be said again at another address
};

}  // namespace tc::transport
