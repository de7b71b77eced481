// SPDX-License-Identifier: Apache-2.0
//
// Memory that a server offers for ucp_get_nbx, and the client's access to it. The GET modes are made of these two.
// Thread: the one that measures.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "common/ucx_party.h"

namespace tc::bench {

// Allocated by UCX, so that peers reach it as directly as the transport can.
class GetServer {
 public:
  static Result<std::unique_ptr<GetServer>> create(const std::string& tls, size_t bytes);
  ~GetServer();
  std::span<std::byte> memory() noexcept { return memory_; }
  // Three words: the worker's address, the memory's key, its address.
  Result<std::string> contact() const;
  UcxParty& party() noexcept { return *party_; }

 private:
  GetServer() = default;
  std::unique_ptr<UcxParty> party_;
  ucp_mem_h mapped_ = nullptr;
  std::span<std::byte> memory_;
};

// What a contact says.
struct GetContact {
  std::string worker, key;
  uint64_t address;
};

// A server's memory as a client reaches it. Gone before the client's party is.
class RemoteMemory {
 public:
  static Result<RemoteMemory> reach(UcxParty& party, const GetContact& contact);
  RemoteMemory(RemoteMemory&& other) noexcept
      : endpoint_(other.endpoint_), key_(std::exchange(other.key_, nullptr)), address_(other.address_) {}
  ~RemoteMemory() {
    if (key_ != nullptr) ucp_rkey_destroy(key_);
  }
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  ucp_ep_h endpoint() const noexcept { return endpoint_; }
  ucp_rkey_h key() const noexcept { return key_; }
  uint64_t address() const noexcept { return address_; }

 private:
  RemoteMemory(ucp_ep_h endpoint, ucp_rkey_h key, uint64_t address) noexcept
      : endpoint_(endpoint), key_(key), address_(address) {}
  ucp_ep_h endpoint_;
  ucp_rkey_h key_;
  uint64_t address_;
};

}  // namespace tc::bench
