// SPDX-License-Identifier: Apache-2.0
//
// What the sessions of one node have in common: its key, in a certificate that it signs itself, and the one form of TLS
// that nodes speak. Nothing in it comes from the system's configuration of OpenSSL, and nothing of it is shared with
// other users of OpenSSL in this process: the library context is our own. All nodes of a process share that one, and it
// stays: threads refer to it until they end.
//
// Thread: any.
#pragma once

#include "trust/tls.h"
#include "trust/tls/openssl.h"

namespace tc::trust {

class OpensslContext final : public TlsContext {
 public:
  static Result<std::unique_ptr<OpensslContext>> create(const PublicKey& key, bool is_temporary, Sign sign);

  Result<std::unique_ptr<TlsSession>> make_session(TlsRole role) override;

 private:
  OpensslContext() = default;
  Status set_key(const PublicKey& public_key, bool is_temporary, Sign sign);
  Status set_rules();

  Openssl<SSL_CTX> context_;
};

}  // namespace tc::trust
