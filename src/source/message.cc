// SPDX-License-Identifier: Apache-2.0
#include "source/message.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tc::source {

namespace {

constexpr size_t cache_line = 64;

// A send copies at least this many bytes of a payload (copy_body() in transport/stream.h).
constexpr size_t copied_at_least = 24;

size_t allocation(size_t capacity) noexcept { return std::max((capacity + 7) & ~size_t{7}, copied_at_least); }

size_t capacity_for(const Ifunc& ifunc, const void* source_args, size_t size) {
  return ifunc.functions.max_size != nullptr ? ifunc.functions.max_size(source_args, size) : size;
}

size_t alignment_for(const Ifunc& ifunc) noexcept {
  return std::max(cache_line, size_t{1} << ifunc.bundle.manifest().payload_alignment_log2);
}

Status check_size(const Ifunc& ifunc, size_t capacity, size_t limit) {
  if (capacity <= limit) return {};
  return fail(TC_ERR_TOO_LARGE, "payload of '{}' is up to {} bytes when at most {} are allowed", ifunc.name(), capacity,
              limit);
}

std::byte* allocate(size_t capacity, size_t alignment) noexcept {
  return static_cast<std::byte*>(::operator new[](allocation(capacity), std::align_val_t{alignment}, std::nothrow));
}

}  // namespace

void Message::Free::operator()(std::byte* memory) const noexcept {
  if (alignment != 0) ::operator delete[](memory, std::align_val_t{alignment});
}

Message::Message(std::shared_ptr<Ifunc> ifunc, Memory payload)
    : payload_(std::move(payload)), index_(ifunc->index), ifunc_(std::move(ifunc)) {}

Result<std::unique_ptr<Message>> Message::create(std::shared_ptr<Ifunc> ifunc, const void* source_args, size_t size,
                                                 size_t limit) {
  const auto capacity = capacity_for(*ifunc, source_args, size);
  TC_CHECK(check_size(*ifunc, capacity, limit));
  const auto alignment = alignment_for(*ifunc);
  Memory memory(allocate(capacity, alignment), Free{alignment});
  if (memory == nullptr) return fail(TC_ERR_NO_MEMORY, "no memory for a payload of {} bytes", capacity);
  std::unique_ptr<Message> message(new Message(std::move(ifunc), std::move(memory)));
  TC_ASSIGN(message->size_, fill_payload(message->ifunc_->functions, message->ifunc_->name(), source_args, size,
                                         message->payload(), capacity));
  // The bytes behind a small payload travel, too. They must not show what this memory held before.
  if (message->size_ < copied_at_least)
    std::memset(message->payload() + message->size_, 0, copied_at_least - message->size_);
  return message;
}

Result<std::unique_ptr<Message>> Message::create_in_place(std::shared_ptr<Ifunc> ifunc, const void* source_args,
                                                          size_t size, size_t limit) {
  if (source_args == nullptr || size < copied_at_least || !ifunc->functions.empty())
    return create(std::move(ifunc), source_args, size, limit);
  TC_CHECK(check_size(*ifunc, size, limit));
  Memory theirs(const_cast<std::byte*>(static_cast<const std::byte*>(source_args)), Free{0});
  std::unique_ptr<Message> message(new Message(std::move(ifunc), std::move(theirs)));
  message->size_ = size;
  return message;
}

Result<size_t> fill_payload(const PayloadFunctions& functions, const std::string& name, const void* source_args,
                            size_t args_size, std::byte* payload, size_t capacity) {
  size_t size = capacity;
  int code = 0;
  if (functions.init_2022 != nullptr)
    code = functions.init_2022(source_args, args_size, payload, &size);
  else if (functions.init_2021 != nullptr)
    code = functions.init_2021(payload, size, source_args, args_size);
  else if (size != 0 && source_args != nullptr)
    std::memcpy(payload, source_args, std::min(args_size, size));
  if (code != 0) return fail(TC_ERR_IFUNC, "payload_init of '{}' returned {}", name, code);
  if (size > capacity)
    return fail(TC_ERR_MALFORMED, "payload_init of '{}' made {} bytes when its bound was {}", name, size, capacity);
  return size;
}

}  // namespace tc::source
