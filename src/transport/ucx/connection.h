// SPDX-License-Identifier: Apache-2.0
//
// A connection whose frames UCX carries: as Active Messages, or as puts into the receiver's ring. The two sides greet on
// a socket of ours and tell each other there where their workers are; UCX is given a peer's address only after the node
// has accepted the peer. The socket stays: by its end a death is noticed, which UCX on shared memory never does.
//
// Thread: the node's. Callbacks of UCX only take notes; what they noted is seen to by deliver().
#pragma once

#include <optional>

#include "transport/ring/ring_in.h"
#include "transport/socket_connection.h"
#include "transport/ucx/am_out.h"
#include "transport/ucx/batch_in.h"
#include "transport/ucx/details.h"
#include "transport/ucx/put_out.h"

namespace tc::transport {

class UcxFabric;

class UcxConnection final : public SocketConnection, private Wire::Owner, private BatchIn::Owner {
 public:
  static Result<std::unique_ptr<UcxConnection>> connect(UcxFabric& fabric, Fd socket, std::string address,
                                                        std::vector<SocketAddress> others, ByteView hello);
  static Result<std::unique_ptr<UcxConnection>> accept(UcxFabric& fabric, Fd& socket, const Origin& origin,
                                                       const Greeting& greeting);
  ~UcxConnection() override;

  OutStream& out() noexcept override { return *out_; }
  InStream& in() noexcept override { return puts() ? static_cast<InStream&>(ring_in_) : batch_in_; }
  bool is_polled() const noexcept override { return puts(); }
  std::string_view transport() const noexcept override;
  void close() noexcept override;
  void set_sleeping(bool sleeping) noexcept override;

  // For the fabric.
  uint64_t token() const noexcept { return token_; }
  // A message for this connection came. From inside UCX.
  void on_message(unsigned id, uint16_t number, ByteView data) noexcept;
  // Sees to what was noted.
  void deliver() noexcept;
  // Sees to what is due. When there will be more; 0: never.
  uint64_t check(uint64_t now) noexcept;
  bool is_noted = false;
  bool has_sends_on_the_way() const noexcept { return out_ != nullptr && out_->in_flight() != 0; }

 private:
  UcxConnection(UcxFabric& fabric, Fd socket, std::string address, std::vector<SocketAddress> others);
  UcxConnection(UcxFabric& fabric, Fd socket, const Origin& origin);

  Status prepare();
  Bytes our_details() const;
  Status take_details(ByteView bytes);
  bool puts() const noexcept;
  PutOut& put_out() noexcept { return static_cast<PutOut&>(*out_); }
  uint64_t consumed() const noexcept { return puts() ? ring_in_.consumed() : batch_in_.consumed(); }
  void give_credit() noexcept;
  void take_signal(ByteView data);

  Status on_greeted(Greeting& greeting) override { return take_details(greeting.details); }
  Greeting answer() const override { return {std::string(transport()), our_details(), {}}; }
  Status open_streams() override;
  void shut_streams() noexcept override;
  void on_socket(uint32_t events) override;
  void on_wire_lost(Error why) noexcept override { lose(std::move(why)); }
  void on_taken() noexcept override {
    if (is_open()) give_credit();
  }

  UcxFabric& fabric_;
  uint64_t token_ = 0;
  UcxDetails theirs_;
  Wire wire_{*this};
  BatchIn batch_in_;
  RingIn ring_in_;
  std::unique_ptr<OwnMemory> ring_memory_;  // that the peer puts into
  std::unique_ptr<BatchOut> out_;
  uint16_t next_number_ = 0;  // of messages from the peer
  uint64_t credited_ = 0;     // bytes that the peer knows we have taken
  uint64_t lost_at_ns_ = 0;   // the socket has ended: UCX may still hold messages, until then
  bool has_frames_ = false;
  bool told_sleeping_ = false;
  std::optional<Error> trouble_;  // noted inside UCX
};

}  // namespace tc::transport
