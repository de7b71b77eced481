// SPDX-License-Identifier: Apache-2.0
//
// Memory for messages that are fetched by rendezvous. It is used again: fresh pages for each large message cost more
// than the message.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace tc::ucp {

class AmBuffers {
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, alignment); }
  };

 public:
  struct Buffer {
    std::unique_ptr<std::byte, Free> memory;
    size_t size = 0;
  };
  // Attack: a peer whose largest messages are never seen again leaves this much behind, and no more.
  static constexpr size_t most_kept = 32u * 1024 * 1024;

  // The smallest one that has room; a new one when there is none. Without memory when there is none of that either.
  Buffer take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::lower_bound(kept_, size, {}, &Buffer::size);
      if (at != kept_.end()) {
        Buffer found = std::move(*at);
        kept_.erase(at);
        bytes_ -= found.size;
        return found;
      }
    }
    auto* const memory = static_cast<std::byte*>(::operator new(size, alignment, std::nothrow));
    return {std::unique_ptr<std::byte, Free>(memory), size};
  }

  void give_back(Buffer buffer) {
    if (buffer.size > most_kept) return;
    const std::lock_guard lock(mutex_);
    // The smaller ones go first: what has room for more is of more use.
    while (!kept_.empty() && bytes_ + buffer.size > most_kept && kept_.front().size < buffer.size) {
      bytes_ -= kept_.front().size;
      kept_.erase(kept_.begin());
    }
    if (bytes_ + buffer.size > most_kept) return;
    bytes_ += buffer.size;
    const auto at = std::ranges::upper_bound(kept_, buffer.size, {}, &Buffer::size);
    kept_.insert(at, std::move(buffer));
  }

  size_t bytes_kept() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::vector<Buffer> kept_;  // by size
  size_t bytes_ = 0;
};

}  // namespace tc::ucp
