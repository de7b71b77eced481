// SPDX-License-Identifier: Apache-2.0
//
// A message: an ifunc with a payload, which can be sent any number of times (2021 paper, section 3.1).
//
// Thread: the node's.
#pragma once

#include <memory>

#include "source/registry.h"

namespace tc::source {

// Builds the payload of the ifunc `name` in `capacity` bytes at `payload`. Runs its payload functions on `source_args`,
// or copies `source_args` if it has none. `capacity` is the result of max_size. Returns the payload's size.
// TC_ERR_IFUNC and TC_ERR_MALFORMED as Message::create().
Result<size_t> fill_payload(const PayloadFunctions& functions, const std::string& name, const void* source_args,
                            size_t size, std::byte* payload, size_t capacity);

class Message {
 public:
  // Builds the payload as fill_payload().
  //   TC_ERR_TOO_LARGE: the payload may exceed `limit`.
  //   TC_ERR_IFUNC: payload_init did not return 0.
  //   TC_ERR_MALFORMED: payload_init claims more bytes than it was given.
  static Result<std::unique_ptr<Message>> create(std::shared_ptr<Ifunc> ifunc, const void* source_args, size_t size,
                                                 size_t limit);
  // The same; but where nothing is to be done with `source_args`, they are the payload themselves, unless they are few
  // bytes. They must outlive the message then.
  static Result<std::unique_ptr<Message>> create_in_place(std::shared_ptr<Ifunc> ifunc, const void* source_args,
                                                          size_t size, size_t limit);

  // Unless it was made in place, the alignment is the ifunc's own, and at least a cache line. It is the same at the target,
  // so payload_init may rely on it. The memory has a multiple of 8 bytes, and at least 24, so that small payloads are copied in whole words.
  std::byte* payload() noexcept { return payload_.get(); }
  const std::byte* payload() const noexcept { return payload_.get(); }
  size_t size() const noexcept { return size_; }
  uint32_t index() const noexcept { return index_; }
  const std::shared_ptr<Ifunc>& ifunc() const noexcept { return ifunc_; }

  // The link that sent this message last, and the header word on that link. The link sets both. So repeated sends to
  // one peer, the hot path, need no look-up.
  uint64_t prepared_for = 0;
  uint64_t prepared_header = 0;

 private:
  struct Free {
    size_t alignment;  // 0: the memory is not ours
    void operator()(std::byte* memory) const noexcept;
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  Message(std::shared_ptr<Ifunc> ifunc, Memory payload);

  Memory payload_;
  size_t size_ = 0;
  uint32_t index_;  // the ifunc's, copied here so that sending reads one cache line
  std::shared_ptr<Ifunc> ifunc_;
};

}  // namespace tc::source
