// SPDX-License-Identifier: Apache-2.0
//
// Frames that come in whole messages: a queue of private copies, laid out as a stream. Messages are appended behind one
// another in large chunks, so many small ones cost no more memory than their frames.
//
// Thread: the node's. Owns all its memory; allocates only when more frames wait than ever before.
#pragma once

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "transport/stream.h"

namespace tc::transport {

class BatchIn final : public InStream {
 public:
  // Who gives the sender credit for what was taken.
  class Owner {
   public:
    virtual void on_taken() noexcept = 0;

   protected:
    ~Owner() = default;
  };

  // `batch_limit`: the longest message taken. `window`: how many bytes of frames may wait here unread; stops a
  // peer that ignores flow control from filling our memory.
  BatchIn(Owner& owner, size_t batch_limit, size_t window);
  ~BatchIn() override;

  // Copies a message in. Its frames must fill it exactly, but for the padding of the last one, which may be missing.
  // Refused as a whole otherwise: TC_ERR_MALFORMED, TC_ERR_TOO_LARGE, TC_ERR_LIMIT.
  Status append(ByteView batch);
  // Bytes of frames that were taken off so far, pads included: what the sender gets credit for.
  uint64_t consumed() const noexcept;

  bool refill() noexcept override;
  void release() noexcept override;

 private:
  struct Chunk;

  Chunk& chunk_with_room(size_t size);

  Owner& owner_;
  Chunk* read_ = nullptr;         // holds cursor_; the chunks behind it follow by Chunk::next
  Chunk* write_ = nullptr;        // the last one
  Chunk* done_ = nullptr;         // read, kept until release()
  uint64_t received_ = 0;         // bytes of frames
  uint64_t consumed_before_ = 0;  // in chunks that were left, or rewound
  const size_t batch_limit_;
  const size_t window_;
  const size_t chunk_bytes_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Chunk*> free_;
};

}  // namespace tc::transport
