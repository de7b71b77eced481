// SPDX-License-Identifier: Apache-2.0
//
// Memory for one-sided puts: our own, which a peer writes to, and the key to a peer's.
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "base/bytes.h"

namespace tc::transport {

// Our memory, allocated by UCX so that processes of this machine can map it. Zeroed, page-aligned.
class OwnMemory {
 public:
  static Result<std::unique_ptr<OwnMemory>> allocate(ucp_context_h context, size_t bytes);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  void* address() const noexcept { return address_; }
  // What a peer needs to reach it.
  Result<Bytes> packed_key() const;

 private:
  OwnMemory(ucp_context_h context, ucp_mem_h handle, void* address)
      : context_(context), handle_(handle), address_(address) {}
  ucp_context_h context_;
  ucp_mem_h handle_;
  void* address_;
};

// A key to a peer's memory. Must outlive the operations that use it.
class RemoteKey {
 public:
  // `packed` came from the peer. UCX does not check it, so call this only if the peer has the same version of UCX.
  static Result<std::unique_ptr<RemoteKey>> unpack(ucp_ep_h endpoint, ByteView packed);
  ~RemoteKey();
  RemoteKey(const RemoteKey&) = delete;
  RemoteKey& operator=(const RemoteKey&) = delete;

  ucp_rkey_h get() const noexcept { return key_; }

 private:
  explicit RemoteKey(ucp_rkey_h key) : key_(key) {}
  ucp_rkey_h key_;
};

}  // namespace tc::transport
