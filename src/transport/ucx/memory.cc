// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/memory.h"

#include <cstring>

#include "transport/ucx/worker.h"

namespace tc::transport {

namespace {

// No key is longer. UCX reads as far as the lengths in a key say, so zeroes are put behind it.
constexpr size_t max_key_bytes = 4096;

}  // namespace

Result<std::unique_ptr<OwnMemory>> OwnMemory::allocate(ucp_context_h context, size_t bytes) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  ucp_mem_h handle = nullptr;
  if (const auto status = ucp_mem_map(context, &params, &handle); status != UCS_OK)
    return fail(TC_ERR_NO_MEMORY, "allocating {} bytes for a peer: {}", bytes, ucx_message(status));
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  if (const auto status = ucp_mem_query(handle, &attributes); status != UCS_OK || attributes.length < bytes) {
    ucp_mem_unmap(context, handle);
    return fail(TC_ERR_NO_MEMORY, "UCX gave {} bytes when {} were asked for", attributes.length, bytes);
  }
  return std::unique_ptr<OwnMemory>(new OwnMemory(context, handle, attributes.address));
}

OwnMemory::~OwnMemory() { ucp_mem_unmap(context_, handle_); }

Result<Bytes> OwnMemory::packed_key() const {
  void* buffer = nullptr;
  size_t size = 0;
  if (const auto status = ucp_rkey_pack(context_, handle_, &buffer, &size); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "packing a memory key: {}", ucx_message(status));
  const auto* const first = static_cast<const std::byte*>(buffer);
  Bytes key(first, first + size);
  ucp_rkey_buffer_release(buffer);
  return key;
}

Result<std::unique_ptr<RemoteKey>> RemoteKey::unpack(ucp_ep_h endpoint, ByteView packed) {
  if (packed.empty() || packed.size() > max_key_bytes)
    return fail(TC_ERR_MALFORMED, "the peer's memory key is {} bytes when 1 to {} are possible", packed.size(),
                max_key_bytes);
  Bytes padded(2 * max_key_bytes);
  std::memcpy(padded.data(), packed.data(), packed.size());
  ucp_rkey_h key = nullptr;
  if (const auto status = ucp_ep_rkey_unpack(endpoint, padded.data(), &key); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "the peer's memory cannot be reached: {}", ucx_message(status));
  return std::unique_ptr<RemoteKey>(new RemoteKey(key));
}

RemoteKey::~RemoteKey() { ucp_rkey_destroy(key_); }

}  // namespace tc::transport
