// SPDX-License-Identifier: Apache-2.0
//
// What libthreechains_tls.so exports (trust/tls.h).
#include "trust/tls/context.h"

extern "C" __attribute__((visibility("default"))) tc::trust::TlsContext* threechains_make_tls(
    uint32_t version, const tc::trust::PublicKey& key, bool is_temporary, tc::trust::Sign sign, tc::Error& error) {
  if (version != tc::trust::tls_plugin_version) return nullptr;
  try {
    auto made = tc::trust::OpensslContext::create(key, is_temporary, std::move(sign));
    if (made) return made->release();
    error = made.error();
  } catch (const std::exception& problem) {
    error = {TC_ERR_INTERNAL, problem.what()};
  }
  return nullptr;
}
