// SPDX-License-Identifier: Apache-2.0
//
// Frames that are sent as a stream of bytes. The frames of one poll are gathered in a buffer and sent by one system
// call: at the end of the poll, when the buffer is full, or with flush(). The first frame that the application sends
// after a poll is sent at once.
//
// Thread: the node's.
#pragma once

#include "transport/flush_list.h"
#include "transport/socket/byte_buffer.h"
#include "transport/socket/channel.h"

namespace tc::transport {

class ByteOut final : public OutStream {
 public:
  class Owner {
   public:
    // The channel did not take everything: call on_channel_room() once it takes more.
    virtual void on_channel_full() noexcept = 0;
    // The channel has failed, and discard() was called. Called in the middle of a send.
    virtual void on_channel_lost(Error why) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  ByteOut(FlushList& list, Owner& owner) noexcept : list_(list), owner_(owner) { slow_commit_flag_ = &always; }
  ~ByteOut() override { list_.remove(*this); }

  // `channel` must stay until shut(). May throw std::bad_alloc.
  void open(Channel& channel);
  // Grants and sends nothing from now on.
  void shut() noexcept;
  size_t put_gathered(std::span<const GatheredFrame> frames) noexcept override;
  void flush() noexcept override;
  void on_channel_room() noexcept;
  // The peer reads no more: what is committed from now on is thrown away with each flush(). So the owner goes on as before
  // until the connection is lost, and reads what the peer sent before. Who sends and never polls finds no room in the end.
  void discard() noexcept;
  // What was committed before shut() and was not sent.
  ByteView unsent() const noexcept { return unsent_; }

 private:
  static constexpr uint32_t always = 1;

  std::byte* make_room(size_t length) noexcept override;
  void slow_commit() noexcept override;
  void send() noexcept;
  void lose_channel(Error why) noexcept;
  size_t keep_rest(std::span<const GatheredFrame> frames, size_t taken) noexcept;
  bool is_open() const noexcept { return max_length_ != 0; }

  FlushList& list_;
  Owner& owner_;
  Channel* channel_ = nullptr;
  std::unique_ptr<std::byte, FreeByteBuffer> memory_;
  std::byte* base_ = nullptr;  // where the first frame lies
  std::byte* sent_ = nullptr;  // the channel has taken everything before
  ByteView unsent_;
  uint64_t sent_in_poll_ = 0;  // the last poll that a frame was sent in at once
  bool is_full_ = false;       // the channel takes nothing now: wait for on_channel_room()
  bool discards_ = false;
};

}  // namespace tc::transport
