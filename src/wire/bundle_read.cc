// SPDX-License-Identifier: Apache-2.0
//
// Reading bundles that come from anywhere: every length is checked before it is used, every hash before the
// bytes behind it are.
#include <algorithm>
#include <tuple>
#include <utility>

#include "wire/bundle.h"
#include "wire/bundle_format.h"
#include "wire/text.h"

namespace tc {

class BundleReader {
 public:
  static Result<Bundle> read(ByteView bytes, std::optional<uint64_t> carried);

  static Result<Manifest> read_manifest(ByteView bytes);

 private:
  static Status read_names(Reader& in, Manifest& m);
  static Result<Slice> read_slice(Reader& in);
  static Status read_exports(Reader& in, Manifest& m);
  static Status read_against(Reader& in, Manifest& m);
  static Status read_slices(Reader& in, Bundle& bundle, Bundle::Head& head);
};

namespace {

// Names reach logs, terminals, symbol tables and file names: nothing in them may act there.
bool a_word(std::string_view text) noexcept { return !text.empty() && wire::visible(text); }
bool an_ifunc_name(std::string_view text) noexcept {
  return a_word(text) && text.size() <= BundleLimits::name_bytes && text.find('/') == std::string_view::npos;
}

}  // namespace

Status BundleReader::read_names(Reader& in, Manifest& m) {
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

Result<Slice> BundleReader::read_slice(Reader& in) {
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

Status BundleReader::read_exports(Reader& in, Manifest& m) {
  const size_t exports = in.u16();
  if (in.ok() && (exports == 0 || exports > BundleLimits::imports))
    return fail(TC_ERR_MALFORMED, "bundle manifest: {} exports when a library has 1 to {}", exports,
                BundleLimits::imports);
  for (size_t i = 0; i < exports && in.ok(); ++i) m.exports.emplace_back(in.str16());
  if (in.ok() && !std::ranges::all_of(m.exports, a_word))
    return fail(TC_ERR_MALFORMED, "bundle manifest: an exported symbol's name is empty or not printable");
  return {};
}

Status BundleReader::read_against(Reader& in, Manifest& m) {
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

Result<Manifest> BundleReader::read_manifest(ByteView bytes) {
  Reader in(bytes);
  Manifest m;
  const auto version = in.u8();
  if (in.ok() && version != bundle_format::manifest_version)
    return fail(TC_ERR_VERSION, "bundle manifest has version {} when this build reads version {}", version,
                bundle_format::manifest_version);
  m.abi_version = in.u8();
  m.entries = in.u8();
  m.payload_alignment_log2 = in.u8();
  if (in.ok() && (m.payload_alignment_log2 > BundleLimits::alignment_log2))
    return fail(TC_ERR_MALFORMED,
                "bundle manifest asks for a payload alignment of 2^{} bytes when at most 2^{} is allowed",
                m.payload_alignment_log2, BundleLimits::alignment_log2);
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

// The manifest is named together with the first slice: never-seen code waits for both.
Status BundleReader::read_slices(Reader& in, Bundle& bundle, Bundle::Head& head) {
  bool named = false;
  bundle.stored_.resize(head.manifest.slices.size());
  for (size_t i = 0; i < bundle.stored_.size(); ++i) {
    if (!bundle.holds(i)) continue;
    const auto& about = head.manifest.slices[i];
    const auto stored = in.bytes(about.stored_size);
    TC_CHECK(in.finish("bundle"));
    ContentId hash;
    if (std::exchange(named, true))
      hash = ContentId::of(stored);
    else
      std::tie(head.id, hash) = ContentId::of_both(head.bytes, stored);
    if (hash != about.hash)
      return fail(TC_ERR_MALFORMED, "bundle '{}': the slice for {} does not match its hash {}", head.manifest.name,
                  about.triple.text, about.hash.short_hex());
    bundle.stored_[i] = std::make_shared<const Bytes>(stored.begin(), stored.end());
  }
  if (!named) head.id = ContentId::of(head.bytes);
  return in.finish("bundle");
}

Result<Bundle> BundleReader::read(ByteView bytes, std::optional<uint64_t> carried) {
  if (bytes.size() > BundleLimits::bundle_bytes)
    return fail(TC_ERR_TOO_LARGE, "bundle is {} bytes when at most {} are allowed", bytes.size(),
                BundleLimits::bundle_bytes);
  if (bytes.empty()) return fail(TC_ERR_MALFORMED, "not an ifunc bundle: it is empty");
  Reader in(bytes);
  const auto magic = in.u32();
  const size_t manifest_size = in.u32();
  if (in.ok() && magic != bundle_format::magic)
    return fail(TC_ERR_MALFORMED,
                "not an ifunc bundle: it begins with {:08x} when a bundle begins with {:08x} (\"TCB1\")", magic,
                bundle_format::magic);
  if (manifest_size > BundleLimits::manifest_bytes)
    return fail(TC_ERR_TOO_LARGE, "bundle manifest is {} bytes when at most {} are allowed", manifest_size,
                BundleLimits::manifest_bytes);
  const auto manifest = in.bytes(manifest_size);
  TC_CHECK(in.finish("bundle"));
  auto head = std::make_shared<Bundle::Head>();
  TC_ASSIGN(head->manifest, read_manifest(manifest));
  head->bytes.assign(manifest.begin(), manifest.end());
  const auto all = bundle_format::all_slices(head->manifest.slices.size());
  Bundle bundle;
  bundle.carried_ = carried.value_or(all);
  if ((bundle.carried_ & ~all) != 0)
    return fail(TC_ERR_MALFORMED, "bundle '{}' claims to carry slices {:x} when it has {}", head->manifest.name,
                bundle.carried_, head->manifest.slices.size());
  TC_CHECK(read_slices(in, bundle, *head));
  TC_ASSIGN(bundle.signatures_, bundle_format::read_signatures(in, head->manifest));
  bundle.head_ = std::move(head);
  return bundle;
}

Status bundle_format::check_manifest(ByteView bytes) {
  TC_CHECK(BundleReader::read_manifest(bytes));
  return {};
}

Result<Bundle> Bundle::read(ByteView file) { return BundleReader::read(file, std::nullopt); }

Result<Bundle> Bundle::read_carried(ByteView bytes, uint64_t carried, const ContentId& expected) {
  TC_ASSIGN(auto bundle, BundleReader::read(bytes, carried));
  if (bundle.id() != expected)
    return fail(TC_ERR_MALFORMED, "bundle '{}' has content id {} when the frame names {}", bundle.manifest().name,
                bundle.id().short_hex(), expected.short_hex());
  return bundle;
}

}  // namespace tc
