// SPDX-License-Identifier: Apache-2.0
#include "source/message.h"

#include <cstring>
#include <new>

#include "ucp_ifunc/ifunc.h"

namespace tc::ucp {

namespace {

// Sizes in a header have 32 bits.
constexpr size_t largest_frame = 0xffff'ff00;

}  // namespace

Result<Message*> Message::create(std::shared_ptr<Ifunc> ifunc, void* source_args, size_t size) {
  static_assert(sizeof(Message) <= frame_offset);
  const size_t capacity = ifunc->functions.max_size != nullptr ? ifunc->functions.max_size(source_args, size) : size;
  const size_t code = ifunc->code.size();
  if (capacity > largest_frame - slot::header_bytes - slot::alignment - code)
    return fail(TC_ERR_TOO_LARGE, "a payload of '{}' is up to {} bytes when a frame holds {} at most", ifunc->name,
                capacity, largest_frame - code);
  void* const memory = ::operator new(frame_offset + slot::code_offset(capacity) + code,
                                      std::align_val_t{block_alignment}, std::nothrow);
  if (memory == nullptr) return fail(TC_ERR_NO_MEMORY, "no memory for a payload of {} bytes", capacity);
  auto* const message = new (memory) Message;
  message->ifunc_ = std::move(ifunc);
  if (auto filled = fill(*message, source_args, size, capacity); !filled) {
    message->destroy();
    return tc::fail(std::move(filled).error());
  }
  return message;
}

Status Message::fill(Message& message, void* source_args, size_t size, size_t capacity) {
  const auto& ifunc = *message.ifunc_;
  TC_ASSIGN(message.payload_size_,
            source::fill_payload(ifunc.functions, ifunc.name, source_args, size, message.payload(), capacity));
  message.cached_size_ = slot::header_bytes + message.payload_size_;
  const size_t code_at = slot::code_offset(message.payload_size_);
  std::memset(message.frame() + message.cached_size_, 0, code_at - message.cached_size_);
  std::memcpy(message.frame() + code_at, ifunc.code.data(), ifunc.code.size());
  message.full_size_ = code_at + ifunc.code.size();
  for (const bool with_code : {false, true}) {
    auto header = message.header(with_code);
    header.flags |= slot::flag_ordered;
    message.headers_[with_code ? 1 : 0] = slot::encode(header);
  }
  std::memcpy(message.frame(), message.headers_[1].data(), slot::header_bytes);
  return {};
}

slot::Header Message::header(bool with_code) const noexcept {
  slot::Header header;
  header.length = static_cast<uint32_t>(size(with_code));
  header.payload_size = static_cast<uint32_t>(payload_size_);
  header.flags = with_code ? slot::flag_code : uint16_t{0};
  header.id = slot::short_id(ifunc_->id);
  return header;
}

void Message::destroy() noexcept {
  this->~Message();
  ::operator delete(static_cast<void*>(this), std::align_val_t{block_alignment});
}

}  // namespace tc::ucp
