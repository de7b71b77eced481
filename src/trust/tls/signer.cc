// SPDX-License-Identifier: Apache-2.0
#include "trust/tls/signer.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace tc::trust {

namespace {

// The object behind OpenSSL's EVP_PKEY.
struct Key {
  PublicKey public_key;
  Sign sign;  // empty: the public half alone
};

// The parameter that hands a `const Sign*` to import(), which copies it.
constexpr const char* sign_parameter = "threechains-sign";
constexpr const char* our_properties = "provider=threechains";
constexpr size_t key_bytes = sizeof(PublicKey::bytes);
constexpr size_t signature_bytes = sizeof(SignatureBytes);

// ---- Keys

void* new_key(void*) noexcept { return new (std::nothrow) Key; }
void free_key(void* key) noexcept { delete static_cast<Key*>(key); }

int has(const void* key, int selection) noexcept {
  const auto* const has = static_cast<const Key*>(key);
  return (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) == 0 || has->sign ? 1 : 0;
}

int match(const void* one, const void* other, int) noexcept {
  return static_cast<const Key*>(one)->public_key == static_cast<const Key*>(other)->public_key ? 1 : 0;
}

int import(void* key, int, const OSSL_PARAM parameters[]) noexcept try {
  auto& made = *static_cast<Key*>(key);
  const auto* const bytes = OSSL_PARAM_locate_const(parameters, OSSL_PKEY_PARAM_PUB_KEY);
  if (bytes == nullptr || bytes->data_type != OSSL_PARAM_OCTET_STRING || bytes->data_size != key_bytes) return 0;
  std::memcpy(made.public_key.bytes.data(), bytes->data, key_bytes);
  const Sign* sign = nullptr;
  const auto* const signer = OSSL_PARAM_locate_const(parameters, sign_parameter);
  if (signer == nullptr) return 1;
  if (signer->data_type != OSSL_PARAM_OCTET_STRING || signer->data_size != sizeof sign) return 0;
  std::memcpy(static_cast<void*>(&sign), signer->data, sizeof sign);
  made.sign = *sign;
  return 1;
} catch (const std::bad_alloc&) {
  return 0;
}

// Exports the public half alone, because another provider has no use for the rest.
int export_key(void* key, int selection, OSSL_CALLBACK* take, void* argument) noexcept {
  if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0) return 0;
  auto& bytes = static_cast<Key*>(key)->public_key.bytes;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, bytes.data(), bytes.size()),
      OSSL_PARAM_construct_end()};
  return take(parameters, argument);
}

const OSSL_PARAM* transferred(int) noexcept {
  static const OSSL_PARAM types[] = {OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, nullptr, 0), OSSL_PARAM_END};
  return types;
}

int get_key_parameters(void* key, OSSL_PARAM parameters[]) noexcept {
  const auto& bytes = static_cast<Key*>(key)->public_key.bytes;
  const auto set_int = [&](const char* name, int value) {
    auto* const found = OSSL_PARAM_locate(parameters, name);
    return found == nullptr || OSSL_PARAM_set_int(found, value) == 1;
  };
  auto* const public_bytes = OSSL_PARAM_locate(parameters, OSSL_PKEY_PARAM_PUB_KEY);
  const bool fine =
      set_int(OSSL_PKEY_PARAM_BITS, 256) && set_int(OSSL_PKEY_PARAM_SECURITY_BITS, 128) &&
      set_int(OSSL_PKEY_PARAM_MAX_SIZE, static_cast<int>(signature_bytes)) &&
      (public_bytes == nullptr || OSSL_PARAM_set_octet_string(public_bytes, bytes.data(), bytes.size()) == 1);
  return fine ? 1 : 0;
}

const OSSL_PARAM* key_parameters(void*) noexcept {
  static const OSSL_PARAM known[] = {OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, nullptr),
                                     OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, nullptr),
                                     OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, nullptr),
                                     OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, nullptr, 0), OSSL_PARAM_END};
  return known;
}

// ---- Signatures

struct Signature {
  const Key* key = nullptr;  // the EVP_PKEY outlives it
};

void* new_signature(void*, const char*) noexcept { return new (std::nothrow) Signature; }
void free_signature(void* signature) noexcept { delete static_cast<Signature*>(signature); }

int begin_signature(void* signature, const char* digest, void* key, const OSSL_PARAM[]) noexcept {
  const bool has_digest = digest != nullptr && *digest != '\0';  // Ed25519 has its own
  if (has_digest || key == nullptr || !static_cast<Key*>(key)->sign) return 0;
  static_cast<Signature*>(signature)->key = static_cast<Key*>(key);
  return 1;
}

int sign(void* signature, unsigned char* made, size_t* made_size, size_t room, const unsigned char* message,
         size_t size) noexcept try {
  *made_size = signature_bytes;
  if (made == nullptr) return 1;
  if (room < signature_bytes) return 0;
  const auto bytes = static_cast<Signature*>(signature)->key->sign({reinterpret_cast<const std::byte*>(message), size});
  std::memcpy(made, bytes.data(), signature_bytes);
  return 1;
} catch (const std::exception&) {
  return 0;
}

int get_signature_parameters(void*, OSSL_PARAM parameters[]) noexcept {
  static constexpr unsigned char ed25519[] = {0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70};  // RFC 8410, section 3
  auto* const found = OSSL_PARAM_locate(parameters, OSSL_SIGNATURE_PARAM_ALGORITHM_ID);
  return found == nullptr ? 1 : OSSL_PARAM_set_octet_string(found, ed25519, sizeof ed25519);
}

const OSSL_PARAM* signature_parameters(void*, void*) noexcept {
  static const OSSL_PARAM known[] = {OSSL_PARAM_octet_string(OSSL_SIGNATURE_PARAM_ALGORITHM_ID, nullptr, 0),
                                     OSSL_PARAM_END};
  return known;
}

// ---- The provider

template <class Function>
OSSL_DISPATCH entry(int id, Function* function) noexcept {
  return {id, reinterpret_cast<void (*)()>(function)};
}

const OSSL_ALGORITHM* algorithms(void*, int operation, int* no_cache) noexcept {
  static const OSSL_DISPATCH for_keys[] = {entry(OSSL_FUNC_KEYMGMT_NEW, new_key),
                                           entry(OSSL_FUNC_KEYMGMT_FREE, free_key),
                                           entry(OSSL_FUNC_KEYMGMT_HAS, has),
                                           entry(OSSL_FUNC_KEYMGMT_MATCH, match),
                                           entry(OSSL_FUNC_KEYMGMT_IMPORT, import),
                                           entry(OSSL_FUNC_KEYMGMT_IMPORT_TYPES, transferred),
                                           entry(OSSL_FUNC_KEYMGMT_EXPORT, export_key),
                                           entry(OSSL_FUNC_KEYMGMT_EXPORT_TYPES, transferred),
                                           entry(OSSL_FUNC_KEYMGMT_GET_PARAMS, get_key_parameters),
                                           entry(OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, key_parameters),
                                           {0, nullptr}};
  static const OSSL_DISPATCH for_signatures[] = {entry(OSSL_FUNC_SIGNATURE_NEWCTX, new_signature),
                                                 entry(OSSL_FUNC_SIGNATURE_FREECTX, free_signature),
                                                 entry(OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, begin_signature),
                                                 entry(OSSL_FUNC_SIGNATURE_DIGEST_SIGN, sign),
                                                 entry(OSSL_FUNC_SIGNATURE_GET_CTX_PARAMS, get_signature_parameters),
                                                 entry(OSSL_FUNC_SIGNATURE_GETTABLE_CTX_PARAMS, signature_parameters),
                                                 {0, nullptr}};
  static const OSSL_ALGORITHM keys[] = {{"ED25519", our_properties, for_keys, nullptr},
                                        {nullptr, nullptr, nullptr, nullptr}};
  static const OSSL_ALGORITHM signatures[] = {{"ED25519", our_properties, for_signatures, nullptr},
                                              {nullptr, nullptr, nullptr, nullptr}};
  *no_cache = 0;
  if (operation == OSSL_OP_KEYMGMT) return keys;
  return operation == OSSL_OP_SIGNATURE ? signatures : nullptr;
}

int start(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** functions, void** context) noexcept {
  static const OSSL_DISPATCH known[] = {entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, algorithms), {0, nullptr}};
  static int nothing = 0;
  *functions = known;
  *context = &nothing;
  return 1;
}

}  // namespace

bool add_signer(OSSL_LIB_CTX* library) noexcept {
  return OSSL_PROVIDER_add_builtin(library, "threechains", &start) == 1 &&
         OSSL_PROVIDER_load(library, "default") != nullptr && OSSL_PROVIDER_load(library, "threechains") != nullptr &&
         EVP_set_default_properties(library, "?provider=default") == 1;  // for the keys of peers
}

Openssl<EVP_PKEY> make_signing_key(OSSL_LIB_CTX* library, const PublicKey& key, Sign sign) {
  auto bytes = key.bytes;
  const Sign* pointer = &sign;
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_name(library, "ED25519", our_properties), &EVP_PKEY_CTX_free);
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, bytes.data(), bytes.size()),
      OSSL_PARAM_construct_octet_string(sign_parameter, static_cast<void*>(&pointer), sizeof pointer),
      OSSL_PARAM_construct_end()};
  EVP_PKEY* made = nullptr;
  if (context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_KEYPAIR, parameters) != 1)
    return nullptr;
  return Openssl<EVP_PKEY>(made);
}

}  // namespace tc::trust
