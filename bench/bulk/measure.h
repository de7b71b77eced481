// SPDX-License-Identifier: Apache-2.0
//
// What the two processes of `ifunc bench bulk` do together, one function for each side. Thread: one in each process.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bulk/am_peer.h"
#include "bulk/node_peer.h"
#include "common/processes.h"
#include "floor/floor.h"

struct evp_cipher_ctx_st;

namespace tc::bench {

// `copy` is memcpy in one process; `raw` a stream of bytes through a socket; `aes` encryption alone, in one process.
// `plain_call` and `plain_reply` go over plain TCP, beside encrypted ones.
enum class BulkMode : uint8_t { flags, call, reply, copy, am, raw, aes, plain_call, plain_reply };
std::string_view mode_name(BulkMode mode) noexcept;

// What encryption alone costs: AES-128-GCM by OpenSSL, in records of 16 KiB as TLS has them, on one core.
class AesGcm {
 public:
  static Result<std::unique_ptr<AesGcm>> create();

  // Encrypts `bytes` into `into`, which has as much room.
  Status seal(ByteView bytes, std::span<std::byte> into);

 private:
  AesGcm() = default;
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  uint64_t records_ = 0;
};

struct BulkPeers {
  std::vector<std::byte> data;     // of the largest size; the same words in both processes
  std::vector<std::byte> landing;  // for memcpy and the raw stream at the source and the target, and Active Messages
  Floor floor;
  std::unique_ptr<BulkAm> am;
  std::unique_ptr<BulkNode> node;
  std::unique_ptr<BulkNode> plain;  // null, like the next one, unless `node` is encrypted
  std::unique_ptr<AesGcm> aes;

  explicit BulkPeers(size_t largest);
  Status poll();
};

// Bytes per ns, each message answered before the next one, after one round that is not measured.
Result<double> measure_bulk(BulkPeers& peers, BulkMode mode, uint64_t rounds);
Status answer_bulk(BulkPeers& peers, BulkMode mode, size_t size, uint64_t rounds);

// Half of a round trip of two flags, in ns.
Result<double> measure_flags(BulkPeers& peers, uint64_t rounds);

// The target's process: it obeys the orders of the source.
Status serve_bulk(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
