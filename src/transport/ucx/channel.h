// SPDX-License-Identifier: Apache-2.0
//
// A stream of bytes through UCX. What is common to Active Messages (am_channel.h) and puts (put_channel.h): who the peer
// is, how much it still takes, and the signals that the two sides send each other.
//
// Each Active Message begins with a mark of eight bytes: the token that the receiver gave us for this channel (16 bits of
// place, 32 random ones), and a sequence number of 16 bits. A message that does not follow its predecessor ends the
// connection instead of being misread.
//
// Flow control: at most a window of bytes is on its way that the receiver has not taken.
//
// Thread: the node's. on_message() is called from inside UCX and only takes notes.
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

  // What the peer has to know of us.
  virtual UcxDetails details() const;
  // The peer was accepted: bytes may pass.
  Status open(const UcxDetails& theirs);
  bool is_open() const noexcept { return endpoint_ != nullptr; }

  Result<size_t> send(ByteView bytes) override;
  Result<size_t> receive(std::span<std::byte> into) override;

  // Bytes so far, in each direction.
  uint64_t sent() const noexcept { return sent_; }
  uint64_t taken() const noexcept { return taken_; }
  // Would send() or receive() have something to do?
  bool has_room() const noexcept { return sent_ - credited_ < window_; }
  bool has_news() const noexcept { return trouble_ || has_arrived() || (endpoint_ && endpoint_->failed()); }

  // For the fabric. Null once the connection is closed, while its last bytes leave.
  UcxConnection* owner = nullptr;
  bool is_noted = false;
  uint64_t token() const noexcept { return token_; }
  void on_message(unsigned id, uint16_t number, ByteView data) noexcept;
  // Before this thread sleeps, where the peer's bytes come without waking it: has the peer send a signal.
  void tell_that_we_sleep();

 protected:
  // The first byte of a signal. A number follows.
  enum class Signal : uint8_t {
    wake = 1,      // you slept, and there is something for you
    credit = 2,    // so many of your bytes were taken
    sleeping = 3,  // I sleep, having taken so many bytes
  };

  explicit UcxChannel(UcxFabric& fabric) noexcept;

  // The rest of open().
  virtual Status open_memory(const UcxDetails&) { return {}; }
  // Sends bytes that the peer has room for. `position`: how many were sent before.
  virtual Status transmit(ByteView bytes, uint64_t position) = 0;
  virtual bool has_arrived() const noexcept = 0;
  // Takes what has arrived, behind the first `taken` bytes of the stream.
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
  uint16_t next_out_ = 0, next_in_ = 0;          // numbers of messages
  uint64_t sent_ = 0, credited_ = 0, told_ = 0;  // bytes: sent, taken by the peer, and of taken_ what the peer knows
  uint64_t window_ = 0;                          // of the peer
  bool told_sleeping_ = false, peer_sleeps_ = false;
  std::optional<Error> trouble_;  // noted inside UCX
};

}  // namespace tc::transport
