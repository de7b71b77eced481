// SPDX-License-Identifier: Apache-2.0
//
// The signatures of a bundle, which stand behind its slices. Whether they hold is not known here: src/trust asks that.
#include <algorithm>

#include "wire/bundle.h"
#include "wire/bundle_format.h"

namespace tc {

namespace {

// The whole bundle, or a slice that is a bundled ifunc.
bool can_be_covered(uint8_t covers, const Manifest& manifest) noexcept {
  if (covers == CodeSignature::whole_bundle) return true;
  return covers < manifest.slices.size() && manifest.slices[covers].role == SliceRole::bundled;
}

CodeSignature read_one(Reader& in) noexcept {
  CodeSignature signature;
  signature.covers = in.u8();
  const auto key = in.bytes(signature.key.size());
  const auto bytes = in.bytes(signature.signature.size());
  if (!in.ok()) return signature;
  std::ranges::copy(key, signature.key.begin());
  std::ranges::copy(bytes, signature.signature.begin());
  return signature;
}

Status check_header(Reader& in, const Manifest& manifest, size_t& count) {
  const auto left = in.remaining();
  const auto magic = in.u32();
  count = in.u8();
  if (!in.ok() || magic != bundle_format::signatures_magic)
    return fail(TC_ERR_MALFORMED,
                "bundle '{}': the {} bytes behind its slices are no signatures, which begin with {:08x} (\"TCS1\")",
                manifest.name, left, bundle_format::signatures_magic);
  if (count == 0 || count > CodeSignature::most)
    return fail(TC_ERR_MALFORMED, "bundle '{}' has {} signatures when 1 to {} are allowed", manifest.name, count,
                CodeSignature::most);
  return {};
}

}  // namespace

Result<std::vector<CodeSignature>> bundle_format::read_signatures(Reader& in, const Manifest& manifest) {
  std::vector<CodeSignature> signatures;
  if (in.remaining() == 0) return signatures;
  size_t count = 0;
  TC_CHECK(check_header(in, manifest, count));
  signatures.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto signature = read_one(in);
    TC_CHECK(in.finish("bundle's signatures"));
    if (!can_be_covered(signature.covers, manifest))
      return fail(TC_ERR_MALFORMED, "bundle '{}': signature {} covers slice {}, which is no bundled ifunc",
                  manifest.name, i, signature.covers);
    if (std::ranges::find(signatures, signature) != signatures.end())
      return fail(TC_ERR_MALFORMED, "bundle '{}': signature {} is there twice", manifest.name, i);
    signatures.push_back(signature);
  }
  TC_CHECK(in.finish_exactly("bundle's signatures"));
  return signatures;
}

void bundle_format::write_signatures(Writer& out, const std::vector<CodeSignature>& signatures) {
  if (signatures.empty()) return;
  out.u32(signatures_magic).u8(static_cast<uint8_t>(signatures.size()));
  for (const auto& each : signatures) out.u8(each.covers).bytes(each.key).bytes(each.signature);
}

size_t bundle_format::size_of_signatures(size_t count) noexcept {
  return count == 0 ? 0 : signatures_header_bytes + count * signature_bytes;
}

Status Bundle::add_signature(const CodeSignature& signature) {
  if (std::ranges::find(signatures_, signature) != signatures_.end()) return {};
  if (!can_be_covered(signature.covers, manifest()))
    return fail(TC_ERR_INVALID, "bundle '{}': a signature covers slice {}, which is no bundled ifunc", manifest().name,
                signature.covers);
  if (signatures_.size() == CodeSignature::most)
    return fail(TC_ERR_LIMIT, "bundle '{}' has {} signatures, and more are not allowed", manifest().name,
                signatures_.size());
  signatures_.push_back(signature);
  return {};
}

}  // namespace tc
