// SPDX-License-Identifier: Apache-2.0
//
// An ifunc with a payload, built in place and ready to be sent any number of times (2021 paper, section 3.1).
#pragma once

#include <memory>

#include "source/registry.h"

namespace tc::source {

// Runs the payload functions of the ifunc `name` on `source_args`, into `capacity` bytes at `payload` (what max_size
// said), or copies them when it has none. The payload's size. TC_ERR_IFUNC and TC_ERR_MALFORMED as below.
Result<size_t> fill_payload(const PayloadFunctions& functions, const std::string& name, const void* source_args,
                            size_t size, std::byte* payload, size_t capacity);

class Message {
 public:
  // Runs the ifunc's payload functions on `source_args`, or copies them when it has none. `limit`: the largest
  // payload allowed (TC_ERR_TOO_LARGE). TC_ERR_IFUNC when payload_init returns other than 0, TC_ERR_MALFORMED
  // when it claims more bytes than it was given.
  static Result<std::unique_ptr<Message>> create(std::shared_ptr<Ifunc> ifunc, const void* source_args, size_t size,
                                                 size_t limit);

  // Aligned as the ifunc asks for, and to a cache line at least: as it will lie at the target, so that payload_init may
  // rely on it. The memory reaches up to the next multiple of 8 bytes behind 24 at least, so that small payloads
  // are copied in whole words.
  std::byte* payload() noexcept { return payload_.get(); }
  const std::byte* payload() const noexcept { return payload_.get(); }
  size_t size() const noexcept { return size_; }
  uint32_t index() const noexcept { return index_; }
  const std::shared_ptr<Ifunc>& ifunc() const noexcept { return ifunc_; }

  // The header word of this message on the link that sent it last, and that link's mark: repeated sends to one peer,
  // the hot path, need no look-up. The link's to set.
  uint64_t prepared_for = 0;
  uint64_t prepared_header = 0;

 private:
  struct Free {
    size_t alignment;
    void operator()(std::byte* memory) const noexcept;
  };
  Message(std::shared_ptr<Ifunc> ifunc, size_t capacity);

  std::unique_ptr<std::byte, Free> payload_;
  size_t size_ = 0;
  uint32_t index_;  // of the ifunc, here so that sending reads one cache line
  std::shared_ptr<Ifunc> ifunc_;
};

}  // namespace tc::source
