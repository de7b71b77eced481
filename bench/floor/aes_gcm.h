// SPDX-License-Identifier: Apache-2.0
//
// What encryption alone costs: AES-128-GCM by OpenSSL, in records of 16 KiB as TLS has them, on one core. Thread: the one that
// measures.
#pragma once

#include <memory>
#include <span>

#include "base/bytes.h"

struct evp_cipher_ctx_st;

namespace tc::bench {

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

}  // namespace tc::bench
