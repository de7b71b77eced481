// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/put_channel.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "transport/ucx/fabric.h"

namespace tc::transport {

namespace {

constexpr size_t ring_offset = 64;  // behind the counter

}  // namespace

Result<std::unique_ptr<UcxChannel>> PutChannel::create(UcxFabric& fabric) {
  TC_ASSIGN(auto memory, OwnMemory::allocate(fabric.worker().context(), ring_offset + fabric.window()));
  return std::unique_ptr<UcxChannel>(new PutChannel(fabric, std::move(memory)));
}

// UCX may still use both for operations in flight.
PutChannel::~PutChannel() {
  if (endpoint_ != nullptr) endpoint_->keep(std::move(memory_), std::move(key_));
}

UcxDetails PutChannel::details() const {
  auto ours = UcxChannel::details();
  ours.address = reinterpret_cast<uintptr_t>(memory_->address());
  if (auto key = memory_->packed_key()) ours.key = std::move(*key);
  return ours;
}

Status PutChannel::open_memory(const UcxDetails& theirs) {
  if (theirs.key.empty()) return fail(TC_ERR_UNSUPPORTED, "it has no memory for puts");
  TC_ASSIGN(key_, RemoteKey::unpack(endpoint_->get(), theirs.key));
  address_ = theirs.address;
  bytes_ = theirs.window_bytes;
  return {};
}

ucs_status_t PutChannel::put(const std::byte* from, size_t size, uint64_t offset) noexcept {
  if (size == 0) return UCS_OK;
  const auto parameters = staging_.parameters();
  return staging_.track(ucp_put_nbx(endpoint_->get(), from, size, address_ + offset, key_->get(), &parameters));
}

Status PutChannel::transmit(ByteView bytes, uint64_t position) {
  const uint64_t counter = position + bytes.size();
  const uint64_t place = position % bytes_;
  const size_t first = std::min<size_t>(bytes.size(), bytes_ - place);
  std::byte* const message = staging_.begin(sizeof counter + bytes.size());
  std::memcpy(message, &counter, sizeof counter);
  std::memcpy(message + sizeof counter, bytes.data(), bytes.size());
  auto status = put(message + sizeof counter, first, ring_offset + place);
  if (status == UCS_OK) status = put(message + sizeof counter + first, bytes.size() - first, ring_offset);
  if (status == UCS_OK) status = ucp_worker_fence(fabric_.worker().get());
  if (status == UCS_OK) status = put(message, sizeof counter, 0);
  staging_.end();
  if (status != UCS_OK) return fail(TC_ERR_DISCONNECTED, "putting into its memory: {}", ucx_message(status));
  return {};
}

uint64_t PutChannel::counter() const noexcept {
  return std::atomic_ref(*static_cast<uint64_t*>(memory_->address())).load(std::memory_order_acquire);
}

Result<size_t> PutChannel::take(std::span<std::byte> into, uint64_t taken) {
  const uint64_t window = fabric_.window(), put = counter() - taken;
  if (put > window) return fail(TC_ERR_MALFORMED, "it put {} bytes into memory of {}", put, window);
  const size_t size = std::min(into.size(), static_cast<size_t>(put));
  const auto* const ring = static_cast<const std::byte*>(memory_->address()) + ring_offset;
  const size_t first = std::min<size_t>(size, window - taken % window);
  std::memcpy(into.data(), ring + taken % window, first);
  std::memcpy(into.data() + first, ring, size - first);
  return size;
}

Status PutChannel::on_bytes(ByteView bytes) {
  return fail(TC_ERR_MALFORMED, "it sent {} bytes in a message when it uses puts", bytes.size());
}

}  // namespace tc::transport
