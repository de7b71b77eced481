// SPDX-License-Identifier: Apache-2.0
//
// Streams of bytes through UCX: by Active Messages (AmChannel) or by one-sided puts (PutChannel).
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>

#include "base/bytes.h"
#include "transport/socket/byte_stream.h"
#include "transport/ucx/details.h"
#include "transport/ucx/worker.h"

namespace tc::transport {

// The memory of a message that is given to UCX. UCX may still read it after the call returns. Then the memory is kept
// until UCX reports that it is done, and the next message gets other memory. Mostly UCX copies the bytes at once, and
// the same memory is used again.
class Staging {
 public:
  // `in_flight` counts messages that UCX still reads; it must outlive the UCX worker.
  explicit Staging(unsigned& in_flight) noexcept : in_flight_(in_flight) {}

  // Memory for a message of this size. May throw std::bad_alloc.
  std::byte* begin(size_t bytes) {
    if (message_ == nullptr) message_ = std::make_unique<Message>();
    if (message_->bytes.size() < bytes) message_->bytes.resize(bytes);
    return message_->bytes.data();
  }
  // The parameters of each operation on that memory: UCX calls on_done() in the end.
  ucp_request_param_t parameters() const noexcept {
    ucp_request_param_t parameters;  // what its mask leaves out is not read
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &Staging::on_done;
    parameters.user_data = message_.get();
    return parameters;
  }
  // Call with the result of the operation. Returns UCS_OK, or UCX's error.
  ucs_status_t track(ucs_status_ptr_t request) noexcept {
    if (UCS_PTR_IS_PTR(request)) ++message_->operations;
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
  }
  // Call when all operations of this message were started.
  void end() noexcept {
    if (message_->operations == 1) return;
    message_->in_flight = &in_flight_;
    ++in_flight_;
    --message_.release()->operations;
  }

 private:
  struct Message {
    unsigned operations = 1;        // of UCX, plus one until end()
    unsigned* in_flight = nullptr;  // after end()
    Bytes bytes;
  };

  static void on_done(void* request, ucs_status_t, void* user) noexcept {
    ucp_request_free(request);
    auto* const message = static_cast<Message*>(user);
    if (--message->operations != 0) return;
    --*message->in_flight;
    delete message;
  }

  unsigned& in_flight_;
  std::unique_ptr<Message> message_;
};

// A stream of bytes through UCX. This class has what Active Messages (AmChannel) and puts (PutChannel) share: the
// peer's identity, flow control, and the signals that the two sides send each other.
//
// Each Active Message begins with a prefix of eight bytes: the token that the receiver assigned to this channel (16
// bits of index, 32 random ones), and a sequence number of 16 bits. A gap in the numbers ends the connection.
//
// Flow control: at most a window of bytes is in flight, sent and not yet taken by the receiver.
//
// Thread: the node's. on_message() is called from inside UCX, so it only stores what came and schedules the channel.
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

  Result<size_t> send(ByteView bytes) override { return send_gathered({&bytes, 1}); }
  bool can_gather() const noexcept override { return true; }
  Result<size_t> send_gathered(std::span<const ByteView> parts) override;
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
  // `message`: the memory of UCX's that the data ends in. True: it is kept, and released later.
  bool on_message(unsigned id, uint16_t number, ByteView data, void* message) noexcept;
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
  // Sends `size` bytes of `parts`, from `from` on, which the peer has room for. `position`: how many were sent before.
  virtual Status transmit(std::span<const ByteView> parts, size_t from, size_t size, uint64_t position) = 0;
  // Copies bytes that have arrived. `taken`: how many were taken before.
  virtual Result<size_t> take(std::span<std::byte> into, uint64_t taken) = 0;
  // Bytes came in an Active Message. True: the message is kept.
  virtual Result<bool> on_bytes(ByteView bytes, void* message) = 0;

  Status post(unsigned id, std::span<const ByteView> parts, size_t from, size_t size);

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

// A stream of bytes in Active Messages. A large message stays in UCX's memory until it is read. Small ones are copied: UCX's
// memory for each is larger than they are.
class AmChannel final : public UcxChannel {
 public:
  explicit AmChannel(UcxFabric& fabric) noexcept : UcxChannel(fabric) {}

 private:
  struct Release {
    ucp_worker_h worker;
    void operator()(void* message) const noexcept { ucp_am_data_release(worker, message); }
  };
  struct Arrived {
    std::unique_ptr<void, Release> message;  // that is kept; null: the bytes are the next ones of copied_
    ByteView bytes;                          // of the message that is kept
    size_t size;                             // of what is left
  };

  Status transmit(std::span<const ByteView> parts, size_t from, size_t size, uint64_t) override {
    return post(am_bytes, parts, from, size);
  }
  bool has_arrived() const noexcept override { return waiting_ != 0; }
  Result<size_t> take(std::span<std::byte> into, uint64_t) override;
  Result<bool> on_bytes(ByteView bytes, void* message) override;
  Arrived& add(ByteView bytes);
  void copy(ByteView bytes);

  std::vector<Arrived> inbox_;
  size_t read_ = 0;  // of the inbox
  Bytes copied_;
  size_t copied_read_ = 0;
  size_t waiting_ = 0;  // bytes
};

// A stream of bytes by one-sided puts into a ring in the receiver's memory. Before the ring stands a counter of the
// bytes that were put. It is put after a fence, so it never counts bytes that are not there yet.
//
// The receiver trusts neither: it checks the counter, and copies the bytes out before they are read. A put causes no
// event at the receiver. So it reads the counter in every progress(), and before it sleeps it requests a signal from
// the peer.
class PutChannel final : public UcxChannel {
 public:
  static Result<std::unique_ptr<UcxChannel>> create(UcxFabric& fabric);
  ~PutChannel() override;
  UcxDetails details() const override;

 private:
  PutChannel(UcxFabric& fabric, std::unique_ptr<OwnMemory> memory) noexcept
      : UcxChannel(fabric), memory_(std::move(memory)) {}

  Status open_memory(const UcxDetails& theirs) override;
  Status transmit(std::span<const ByteView> parts, size_t from, size_t size, uint64_t position) override;
  bool has_arrived() const noexcept override { return counter() != taken_; }
  Result<size_t> take(std::span<std::byte> into, uint64_t taken) override;
  Result<bool> on_bytes(ByteView bytes, void* message) override;

  uint64_t counter() const noexcept;
  ucs_status_t put(const std::byte* from, size_t size, uint64_t offset) noexcept;
  ucs_status_t put_counter(uint64_t counter);

  std::unique_ptr<OwnMemory> memory_;  // ours, which the peer puts into
  std::unique_ptr<RemoteKey> key_;     // to the peer's memory
  uint64_t address_ = 0, bytes_ = 0;   // of the peer's memory; of its ring
};

}  // namespace tc::transport
