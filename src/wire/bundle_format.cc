// SPDX-License-Identifier: Apache-2.0
//
// Every length that a bundle claims is checked before it is used.
#include "wire/bundle_format.h"

#include <algorithm>
#include <utility>

#include "wire/text.h"

namespace tc::bundle_format {

namespace {

// Names reach logs, terminals, symbol tables and file names. They must be harmless there.
bool a_word(std::string_view text) noexcept { return !text.empty() && wire::visible(text); }
bool an_ifunc_name(std::string_view text) noexcept {
  return a_word(text) && text.size() <= BundleLimits::name_bytes && text.find('/') == std::string_view::npos;
}

Status read_names(Reader& in, Manifest& m) {
  m.name = in.str8();
  m.tool = in.str8();
  if (in.ok() && !an_ifunc_name(m.name))
    return fail(TC_ERR_MALFORMED,
                "bundle manifest: the ifunc's name is empty, longer than {} bytes, not printable or holds a slash",
                BundleLimits::name_bytes);
  if (!wire::printable(m.tool)) return fail(TC_ERR_MALFORMED, "bundle manifest: the tool's name is not printable");
  const size_t dependencies = in.u8();
  if (dependencies > BundleLimits::dependencies)
    return fail(TC_ERR_TOO_LARGE, "bundle manifest: {} dependencies when at most {} are allowed", dependencies,
                BundleLimits::dependencies);
  for (size_t i = 0; i < dependencies && in.ok(); ++i) m.dependencies.emplace_back(in.str8());
  const size_t imports = in.u16();
  if (imports > BundleLimits::imports)
    return fail(TC_ERR_TOO_LARGE, "bundle manifest: {} imports when at most {} are allowed", imports,
                BundleLimits::imports);
  m.imports.reserve(std::min(imports, in.remaining() / 2));  // each takes two bytes at least
  for (size_t i = 0; i < imports && in.ok(); ++i) m.imports.emplace_back(in.str16());
  if (!in.ok()) return {};  // the caller says where the bytes ended
  if (!std::ranges::all_of(m.dependencies, a_word) || !std::ranges::all_of(m.imports, a_word))
    return fail(TC_ERR_MALFORMED, "bundle manifest: a library's or symbol's name is empty or not printable");
  return {};
}

Result<Slice> read_slice(Reader& in) {
  Slice s;
  const auto role = in.u8();
  const auto form = in.u8();
  const auto packing = in.u8();
  const auto triple = in.str8();
  s.cpu = in.str8();
  s.stored_size = in.u32();
  s.unpacked_size = in.u32();
  s.hash = ContentId::from(in.bytes(32));
  TC_CHECK(in.finish("bundle manifest"));
  const bool is_bundled = role == static_cast<uint8_t>(SliceRole::bundled);
  if (role > 2 || form < 1 || form > 3 || packing > 1 ||
      is_bundled != (form == static_cast<uint8_t>(SliceForm::bundle)))
    return fail(TC_ERR_MALFORMED, "bundle manifest: role {}, form {}, packing {} of a slice are not known", role, form,
                packing);
  if (!wire::visible(triple) || !wire::visible(s.cpu))
    return fail(TC_ERR_MALFORMED, "bundle manifest: a slice's triple or CPU is not printable");
  if (is_bundled) {
    if (!triple.empty() || !an_ifunc_name(s.cpu))
      return fail(TC_ERR_MALFORMED, "bundle manifest: a bundled ifunc has a triple, or a name that no ifunc can have");
  } else {
    auto parsed = TargetTriple::parse(triple);
    if (!parsed) return fail(TC_ERR_MALFORMED, "bundle manifest: {}", parsed.error().message);
    s.triple = std::move(*parsed);
  }
  s.role = static_cast<SliceRole>(role);
  s.form = static_cast<SliceForm>(form);
  s.compressed = packing == 1;
  if (s.unpacked_size > BundleLimits::slice_bytes || s.stored_size > BundleLimits::slice_bytes)
    return fail(TC_ERR_TOO_LARGE, "bundle manifest: slice for {} is {} bytes when at most {} are allowed",
                s.triple.text, std::max(s.unpacked_size, s.stored_size), BundleLimits::slice_bytes);
  if (!s.compressed && s.stored_size != s.unpacked_size)
    return fail(TC_ERR_MALFORMED, "bundle manifest: slice for {} is stored in {} bytes when it holds {}", s.triple.text,
                s.stored_size, s.unpacked_size);
  return s;
}

Status read_exports(Reader& in, Manifest& m) {
  const size_t exports = in.u16();
  if (in.ok() && (exports == 0 || exports > BundleLimits::imports))
    return fail(TC_ERR_MALFORMED, "bundle manifest: {} exports when a library has 1 to {}", exports,
                BundleLimits::imports);
  for (size_t i = 0; i < exports && in.ok(); ++i) m.exports.emplace_back(in.str16());
  if (in.ok() && !std::ranges::all_of(m.exports, a_word))
    return fail(TC_ERR_MALFORMED, "bundle manifest: an exported symbol's name is empty or not printable");
  return {};
}

Status read_against(Reader& in, Manifest& m) {
  const size_t against = in.u8();
  if (in.ok() && (against == 0 || against > BundleLimits::dependencies))
    return fail(TC_ERR_MALFORMED, "bundle manifest: {} libraries that were sent when 1 to {} are allowed", against,
                BundleLimits::dependencies);
  for (size_t i = 0; i < against && in.ok(); ++i) m.against.emplace_back(in.str8());
  if (in.ok() && !std::ranges::all_of(m.against, an_ifunc_name))
    return fail(TC_ERR_MALFORMED,
                "bundle manifest: the name of a library that was sent is none that an ifunc can have");
  return {};
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
  if (!in.ok() || magic != signatures_magic)
    return fail(TC_ERR_MALFORMED,
                "bundle '{}': the {} bytes behind its slices are no signatures, which begin with {:08x} (\"TCS1\")",
                manifest.name, left, signatures_magic);
  if (count == 0 || count > CodeSignature::most)
    return fail(TC_ERR_MALFORMED, "bundle '{}' has {} signatures when 1 to {} are allowed", manifest.name, count,
                CodeSignature::most);
  return {};
}

}  // namespace

Bytes encode_manifest(const Manifest& m) {
  Bytes out;
  Writer w(out);
  w.u8(manifest_version).u8(m.abi_version).u8(m.entries).u8(m.payload_alignment_log2);
  w.str8(m.name).str8(m.tool);
  w.u8(static_cast<uint8_t>(m.dependencies.size()));
  for (const auto& name : m.dependencies) w.str8(name);
  w.u16(static_cast<uint16_t>(m.imports.size()));
  for (const auto& name : m.imports) w.str16(name);
  w.u8(static_cast<uint8_t>(m.slices.size()));
  for (const auto& s : m.slices) {
    w.u8(static_cast<uint8_t>(s.role)).u8(static_cast<uint8_t>(s.form)).u8(s.compressed ? 1 : 0);
    w.str8(s.triple.text).str8(s.cpu).u32(s.stored_size).u32(s.unpacked_size).bytes(s.hash.bytes);
  }
  if (m.has(entry_library)) {
    w.u16(static_cast<uint16_t>(m.exports.size()));
    for (const auto& name : m.exports) w.str16(name);
  }
  if (m.has(entry_against)) {
    w.u8(static_cast<uint8_t>(m.against.size()));
    for (const auto& name : m.against) w.str8(name);
  }
  return out;
}

Result<Manifest> read_manifest(ByteView bytes) {
  Reader in(bytes);
  Manifest m;
  const auto version = in.u8();
  if (in.ok() && version != manifest_version)
    return fail(TC_ERR_VERSION, "bundle manifest has version {} when this build reads version {}", version,
                manifest_version);
  m.abi_version = in.u8();
  m.entries = in.u8();
  m.payload_alignment_log2 = in.u8();
  if (in.ok() && (m.payload_alignment_log2 > BundleLimits::alignment_log2))
    return fail(TC_ERR_MALFORMED,
                "bundle manifest asks for a payload alignment of 2^{} bytes when at most 2^{} is allowed",
                m.payload_alignment_log2, BundleLimits::alignment_log2);
  if (m.has(entry_library) && m.has(entry_concurrent))
    return fail(TC_ERR_MALFORMED,
                "bundle manifest: entries {:#04x} are a library that says it is concurrent code, which only the ifuncs "
                "that use it can say",
                m.entries);
  TC_CHECK(read_names(in, m));
  const size_t slices = in.u8();
  if (in.ok() && (slices == 0 || slices > BundleLimits::slices))
    return fail(TC_ERR_MALFORMED, "bundle manifest: {} slices when 1 to {} are allowed", slices, BundleLimits::slices);
  m.slices.reserve(slices);
  for (size_t i = 0; i < slices; ++i) {
    TC_ASSIGN(auto slice, read_slice(in));
    m.slices.push_back(std::move(slice));
  }
  if (m.has(entry_library)) TC_CHECK(read_exports(in, m));
  if (m.has(entry_against)) TC_CHECK(read_against(in, m));
  TC_CHECK(in.finish_exactly("bundle manifest"));
  return m;
}

bool can_be_covered(uint8_t covers, const Manifest& manifest) noexcept {
  if (covers == CodeSignature::whole_bundle) return true;
  return covers < manifest.slices.size() && manifest.slices[covers].role == SliceRole::bundled;
}

Result<std::vector<CodeSignature>> read_signatures(Reader& in, const Manifest& manifest) {
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

void write_signatures(Writer& out, const std::vector<CodeSignature>& signatures) {
  if (signatures.empty()) return;
  out.u32(signatures_magic).u8(static_cast<uint8_t>(signatures.size()));
  for (const auto& each : signatures) out.u8(each.covers).bytes(each.key).bytes(each.signature);
}

size_t size_of_signatures(size_t count) noexcept {
  return count == 0 ? 0 : signatures_header_bytes + count * signature_bytes;
}

}  // namespace tc::bundle_format
