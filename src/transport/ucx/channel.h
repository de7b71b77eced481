// SPDX-License-Identifier: Apache-2.0
//
// A stream of bytes through UCX. This class has what Active Messages (am_channel.h) and puts (put_channel.h) share: the
// peer's identity, flow control, and the signals that the two sides send each other.
//
// Each Active Message begins with a prefix of eight bytes: the token that the receiver assigned to this channel (16
// bits of index, 32 random ones), and a sequence number of 16 bits. A gap in the numbers ends the connection.
//
// Flow control: at most a window of bytes is in flight, sent and not yet taken by the receiver.
//
// Thread: the node's. on_message() is called from inside UCX, so it only stores what came and schedules the channel.
#pragma once

#include <memory>
#include <optional>

#include "transport/socket/channel.h"
#include "transport/ucx/details.h"
#include "transport/ucx/endpoint.h"
#include "transport/ucx/staging.h"

namespace tc::transport {

class UcxConnection;
class UcxFabric;

// Active message ids.
inline constexpr unsigned am_bytes = 1, am_signal = 3;

class UcxChannel : public Channel {
 public:
  // One of the kind that the fabric is configured for, with its token. TC_ERR_LIMIT, TC_ERR_NO_MEMORY.
  static Result<std::unique_ptr<UcxChannel>> create(UcxFabric& fabric, UcxConnection& owner);
  virtual ~UcxChannel();

  // The details that the peer needs.
  virtual UcxDetails details() const;
  // The peer was accepted: bytes may pass.
  Status open(const UcxDetails& theirs);
  bool is_open() const noexcept { return endpoint_ != nullptr; }

  Result<size_t> send(ByteView bytes) override;
  Result<size_t> receive(std::span<std::byte> into) override;

  // Bytes so far, in each direction.
  uint64_t sent() const noexcept { return sent_; }
  uint64_t taken() const noexcept { return taken_; }
  // Bytes that were sent and that the peer has not taken.
  uint64_t unread() const noexcept { return sent_ - credited_; }
  // Takes what has arrived and throws it away, so that the peer can go on sending: of a connection that is closed.
  void discard_arrived() noexcept;
  // Would send() take bytes? Would receive() return bytes or an error?
  bool has_room() const noexcept { return unread() < window_; }
  virtual bool has_arrived() const noexcept = 0;
  bool is_readable() const noexcept { return error_ || has_arrived() || (endpoint_ && endpoint_->failed()); }

  // For the fabric. Null once the connection is closed, while its last bytes are being sent.
  UcxConnection* owner = nullptr;
  bool is_ready = false;
  uint64_t token() const noexcept { return token_; }
  void on_message(unsigned id, uint16_t number, ByteView data) noexcept;
  // For puts, before this thread sleeps: asks the peer for a signal with its next bytes.
  void announce_sleep();

 protected:
  // The first byte of a signal. A u64 follows.
  enum class Signal : uint8_t {
    wake = 1,      // the receiver has announced that it sleeps, and there are bytes for it
    credit = 2,    // how many bytes were taken
    sleeping = 3,  // the sender of the signal sleeps; how many bytes it had taken
  };

  explicit UcxChannel(UcxFabric& fabric) noexcept;

  // The rest of open().
  virtual Status open_memory(const UcxDetails&) { return {}; }
  // Sends bytes, which the peer has room for. `position`: how many were sent before.
  virtual Status transmit(ByteView bytes, uint64_t position) = 0;
  // Copies bytes that have arrived. `taken`: how many were taken before.
  virtual Result<size_t> take(std::span<std::byte> into, uint64_t taken) = 0;
  // Bytes came in an Active Message.
  virtual Status on_bytes(ByteView bytes) = 0;

  Status post(unsigned id, ByteView payload);

  UcxFabric& fabric_;
  std::shared_ptr<UcxEndpoint> endpoint_;
  Staging staging_;
  uint64_t taken_ = 0;  // bytes

 private:
  Status signal(Signal what, uint64_t value);
  Status on_signal(ByteView data);

  uint64_t token_ = 0, their_token_ = 0;
  uint16_t next_out_ = 0, next_in_ = 0;               // sequence numbers of messages
  uint64_t sent_ = 0, credited_ = 0, announced_ = 0;  // bytes: sent; taken by the peer; of ours, reported to it
  uint64_t window_ = 0;                               // of the peer
  bool announced_sleep_ = false, peer_is_asleep_ = false;
  std::optional<Error> error_;  // found inside UCX; receive() returns it
};

}  // namespace tc::transport
