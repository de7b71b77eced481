// SPDX-License-Identifier: Apache-2.0
#include "trust/code_signature.h"

#include <algorithm>

namespace tc::trust {

namespace {

// The bytes that are signed. They begin with words of our own, so that no signature of code is valid for other data,
// and no signature of other data is valid for code.
class SignedText {
 public:
  explicit SignedText(const ContentId& id) noexcept {
    const auto behind = std::ranges::copy(as_bytes(words), bytes_.data()).out;
    std::ranges::copy(id.bytes, behind);
  }
  ByteView bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::string_view words{"threechains bundle 1\0", 21};
  std::array<std::byte, words.size() + sizeof(ContentId::bytes)> bytes_;
};

Status add(Bundle& bundle, const KeyPair& key, uint8_t covers, const ContentId& id) {
  return bundle.add_signature({covers, key.public_key().bytes, key.sign(SignedText(id).bytes())});
}

}  // namespace

Status sign_bundle(Bundle& bundle, const KeyPair& key) {
  TC_CHECK(add(bundle, key, CodeSignature::whole_bundle, bundle.id()));
  const auto& slices = bundle.manifest().slices;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].role != SliceRole::bundled || !bundle.holds(i)) continue;
    TC_ASSIGN(const auto inner, bundle.bundled(slices[i].cpu));
    TC_CHECK(add(bundle, key, static_cast<uint8_t>(i), inner.id()));
  }
  return {};
}

bool is_valid(const CodeSignature& signature, const Bundle& bundle) noexcept {
  return signature.covers == CodeSignature::whole_bundle &&
         verify(PublicKey{signature.key}, SignedText(bundle.id()).bytes(), signature.signature);
}

std::vector<PublicKey> signers_of(const Bundle& bundle) {
  std::vector<PublicKey> signers;
  for (const auto& signature : bundle.signatures())
    if (is_valid(signature, bundle)) signers.push_back({signature.key});
  return signers;
}

bool is_signed_by(const Bundle& bundle, const PublicKey& key) noexcept {
  return std::ranges::any_of(bundle.signatures(), [&](const auto& signature) {
    return signature.key == key.bytes && is_valid(signature, bundle);
  });
}

}  // namespace tc::trust
