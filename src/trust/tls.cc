// SPDX-License-Identifier: Apache-2.0
#include "trust/tls.h"

#include "base/plugin.h"

namespace tc::trust {

Result<std::unique_ptr<TlsContext>> open_tls(std::shared_ptr<const KeyPair> key, const std::string& plugin) {
  const auto library = open_plugin(tls_plugin_name, plugin);
  if (!library)
    return fail(TC_ERR_UNSUPPORTED,
                "the plug-in for encrypted connections cannot be loaded ({}); install {} and OpenSSL 3, or name the "
                "peer's network with trust-network",
                library.error().message, tls_plugin_name);
  const auto found = find_in_plugin(*library, tls_factory_name);
  if (!found) return context("the plug-in for encrypted connections", found.error());
  Error error{TC_ERR_UNSUPPORTED, fmt::format("{} is not of this version of Three-Chains", tls_plugin_name)};
  const auto public_key = key->public_key();
  const bool is_temporary = key->is_temporary();
  Sign sign = [key = std::move(key)](ByteView message) { return key->sign(message); };
  std::unique_ptr<TlsContext> made(
      reinterpret_cast<TlsFactory>(*found)(tls_plugin_version, public_key, is_temporary, std::move(sign), error));
  if (made == nullptr) return fail(std::move(error));
  return made;
}

}  // namespace tc::trust
