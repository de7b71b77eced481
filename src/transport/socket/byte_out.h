// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave as a stream of bytes. What one turn sends is gathered in a buffer and leaves in one call of the
// system: at the end of the poll, when the buffer is full, or with flush(). The first frame that the application sends
// after a poll leaves at once.
//
// Thread: the node's.
#pragma once

#include <memory>

#include "transport/socket/channel.h"
#include "transport/stream.h"

namespace tc::transport {

class ByteOut final : public OutStream {
 public:
  class Owner {
   public:
    // The channel took less than everything: call on_channel_room() once it takes more.
    virtual void on_channel_full() noexcept = 0;
    // It takes nothing any more. Called in the middle of a send.
    virtual void on_channel_lost(Error why) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  ByteOut(FlushList& list, Owner& owner) noexcept : list_(list), owner_(owner) { attention_ = &always; }
  ~ByteOut() override { list_.remove(*this); }

  // `channel` must stay until shut(). May throw std::bad_alloc.
  void open(Channel& channel);
  // Nothing is granted or sent any more.
  void shut() noexcept;
  size_t put_gathered(std::span<const GatheredFrame> frames) noexcept override;
  void flush() noexcept override;
  void on_channel_room() noexcept;
  // What was committed before shut() and was not sent.
  ByteView unsent() const noexcept { return unsent_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  static constexpr uint32_t always = 1;

  std::byte* make_room(size_t length) noexcept override;
  void attend() noexcept override;
  void send() noexcept;
  size_t keep_rest(std::span<const GatheredFrame> frames, size_t taken) noexcept;
  bool is_open() const noexcept { return max_length_ != 0; }

  FlushList& list_;
  Owner& owner_;
  Channel* channel_ = nullptr;
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* base_ = nullptr;  // where the first frame lies
  std::byte* sent_ = nullptr;  // up to here the channel has taken it
  ByteView unsent_;
  uint64_t sent_in_turn_ = 0;  // when a frame left at once last
  bool is_full_ = false;       // the channel takes nothing now
};

}  // namespace tc::transport
