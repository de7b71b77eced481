// SPDX-License-Identifier: Apache-2.0
//
// A registered ifunc and its messages: the handles of the API, from the inside.
//
// Threads: an Ifunc is shared by all that send it; a Message belongs to its creator.
#pragma once

#include <threechains/ucp_ifunc.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "source/registry.h"
#include "ucp_ifunc/slot_frame.h"

// Which endpoints were given the code of one ifunc. Asking about one of the last few costs a load.
namespace tc::ucp {

class Given {
 public:
  bool has(ucp_ep_h ep) noexcept {
    auto& recent = recent_at(ep);
    if (recent.load(std::memory_order_relaxed) == ep) return true;
    const std::lock_guard lock(mutex_);
    if (!endpoints_.contains(ep)) return false;
    recent.store(ep, std::memory_order_relaxed);
    return true;
  }
  void add(ucp_ep_h ep) {
    const std::lock_guard lock(mutex_);
    endpoints_.insert(ep);
  }
  void remove(ucp_ep_h ep) noexcept {
    const std::lock_guard lock(mutex_);
    endpoints_.erase(ep);
    auto& recent = recent_at(ep);
    if (recent.load(std::memory_order_relaxed) == ep) recent.store(nullptr, std::memory_order_relaxed);
  }

 private:
  std::atomic<ucp_ep_h>& recent_at(ucp_ep_h ep) noexcept {
    return recent_[(reinterpret_cast<uintptr_t>(ep) >> 6) % recent_.size()];
  }
  std::array<std::atomic<ucp_ep_h>, 16> recent_{};
  std::mutex mutex_;
  std::unordered_set<ucp_ep_h> endpoints_;
};

}  // namespace tc::ucp

// The name is the API's: what a ucp_ifunc_h points to.
struct ucp_ifunc : std::enable_shared_from_this<ucp_ifunc> {
  std::string name;  // under which it is registered
  tc::ContentId id;
  tc::Bytes code;  // as it stands in a frame: CodeHead, bundle, padding
  tc::source::PayloadFunctions functions;
  bool library = false;
  uint32_t registrations = 0;  // guarded by the context's mutex
  tc::ucp::Given given;

  // Of a library always: its target may have taken another version since.
  bool needs_code(ucp_ep_h ep) noexcept { return library || !given.has(ep); }
};

namespace tc::ucp {

using Ifunc = ::ucp_ifunc;

// Makes an ifunc of a bundle: loads its payload functions, lays out its code.
// `bitcode`: false leaves bitcode out of frames when there is machine code.
Result<std::shared_ptr<Ifunc>> make_ifunc(const std::string& name, const Bundle& bundle, bool bitcode);

// The bundle called `name` in the directory of ifuncs: NAME.ifunc, else loose NAME.TRIPLE.bc files with NAME.deps,
// packed. TC_ERR_NOT_FOUND names the directory.
Result<Bundle> find_bundle(const std::string& name);

// The frame of a message, in front of which lies what is known of it. One allocation; API handles point to the frame.
class Message {
 public:
  static Result<Message*> create(std::shared_ptr<Ifunc> ifunc, void* source_args, size_t size);
  // From the frame that an API handle carries.
  static Message& of(const ucp_ifunc_msg_t& msg) noexcept {
    return *reinterpret_cast<Message*>(static_cast<std::byte*>(msg.frame) - frame_offset);
  }
  void destroy() noexcept;

  std::byte* frame() noexcept { return reinterpret_cast<std::byte*>(this) + frame_offset; }
  std::byte* payload() noexcept { return frame() + slot::header_bytes; }
  size_t payload_size() const noexcept { return payload_size_; }
  size_t size(bool with_code) const noexcept { return with_code ? full_size_ : cached_size_; }
  ByteView body(bool with_code) noexcept { return {payload(), size(with_code) - slot::header_bytes}; }
  // Of a frame that is stored in order, or goes a way that keeps bytes together.
  const slot::HeaderBytes& ordered_header(bool with_code) const noexcept { return headers_[with_code ? 1 : 0]; }
  // Of any other.
  slot::Header header(bool with_code) const noexcept;
  Ifunc& ifunc() noexcept { return *ifunc_; }

 private:
  // Payloads start at a multiple of 64, so that payload_init may rely on what TC_PAYLOAD_ALIGN commonly asks for.
  static constexpr size_t block_alignment = 64;
  static constexpr size_t frame_offset = 192 + block_alignment - slot::header_bytes;

  Message() = default;
  static Status fill(Message& message, void* source_args, size_t size, size_t capacity);

  std::shared_ptr<Ifunc> ifunc_;
  size_t payload_size_ = 0, cached_size_ = 0, full_size_ = 0;
  std::array<slot::HeaderBytes, 2> headers_{};
};

}  // namespace tc::ucp
