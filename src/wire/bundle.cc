// SPDX-License-Identifier: Apache-2.0
#include "wire/bundle.h"

#include <zstd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "wire/bundle_format.h"

namespace tc {

namespace {

Status check_slice_sizes(const Manifest& m, const std::vector<Bytes>& stored) {
  size_t total = bundle_format::header_bytes + BundleLimits::manifest_bytes +
                 bundle_format::size_of_signatures(CodeSignature::most);
  for (const auto& slice : stored) {
    if (slice.size() > BundleLimits::slice_bytes)
      return fail(TC_ERR_TOO_LARGE, "a slice of '{}' is {} bytes when at most {} are allowed", m.name, slice.size(),
                  BundleLimits::slice_bytes);
    total += slice.size();
  }
  if (total > BundleLimits::bundle_bytes)
    return fail(TC_ERR_TOO_LARGE, "bundle '{}' is {} bytes when at most {} are allowed", m.name, total,
                BundleLimits::bundle_bytes);
  return {};
}

Status check_limits(const Manifest& m, const std::vector<Bytes>& stored) {
  if (m.name.empty() || m.name.size() > BundleLimits::name_bytes)
    return fail(TC_ERR_INVALID, "ifunc name is {} bytes when 1 to {} are allowed", m.name.size(),
                BundleLimits::name_bytes);
  if (m.slices.empty()) return fail(TC_ERR_INVALID, "bundle '{}' holds no slices", m.name);
  if (m.slices.size() != stored.size())
    return fail(TC_ERR_INVALID, "bundle '{}' names {} slices and brings {}", m.name, m.slices.size(), stored.size());
  if (m.slices.size() > BundleLimits::slices)
    return fail(TC_ERR_TOO_LARGE, "bundle '{}' has {} slices when at most {} are allowed", m.name, m.slices.size(),
                BundleLimits::slices);
  if (m.imports.size() > BundleLimits::imports)
    return fail(TC_ERR_TOO_LARGE, "bundle '{}' needs {} symbols when at most {} are allowed", m.name, m.imports.size(),
                BundleLimits::imports);
  if (m.exports.size() > BundleLimits::imports || m.exports.empty() == m.has(entry_library))
    return fail(TC_ERR_INVALID, "bundle '{}' exports {} symbols when a library exports 1 to {}, and others none",
                m.name, m.exports.size(), BundleLimits::imports);
  if (m.against.size() > BundleLimits::dependencies || m.against.empty() == m.has(entry_against))
    return fail(TC_ERR_INVALID, "bundle '{}' uses {} libraries that were sent when 1 to {} are allowed, or none",
                m.name, m.against.size(), BundleLimits::dependencies);
  if (m.dependencies.size() > BundleLimits::dependencies)
    return fail(TC_ERR_TOO_LARGE, "bundle '{}' needs {} libraries when at most {} are allowed", m.name,
                m.dependencies.size(), BundleLimits::dependencies);
  for (const auto& name : m.imports)
    if (name.empty() || name.size() > UINT16_MAX)
      return fail(TC_ERR_INVALID, "bundle '{}' imports a symbol of {} bytes", m.name, name.size());
  for (const auto& name : m.exports)
    if (name.empty() || name.size() > UINT16_MAX)
      return fail(TC_ERR_INVALID, "bundle '{}' exports a symbol of {} bytes", m.name, name.size());
  for (const auto& name : m.dependencies)
    if (name.empty() || name.size() > UINT8_MAX)
      return fail(TC_ERR_INVALID, "bundle '{}' depends on a library name of {} bytes", m.name, name.size());
  for (const auto& name : m.against)
    if (name.empty() || name.size() > BundleLimits::name_bytes)
      return fail(TC_ERR_INVALID, "bundle '{}' uses a library with a name of {} bytes", m.name, name.size());
  for (const auto& slice : m.slices)
    if (slice.cpu.size() > UINT8_MAX)
      return fail(TC_ERR_INVALID, "a slice of '{}' names a CPU of {} bytes", m.name, slice.cpu.size());
  return check_slice_sizes(m, stored);
}

Status check_content_size(ByteView stored, size_t unpacked_size) {
  const auto claimed = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (claimed == ZSTD_CONTENTSIZE_ERROR || claimed == ZSTD_CONTENTSIZE_UNKNOWN)
    return fail(TC_ERR_MALFORMED, "compressed slice of {} bytes does not say how many it unpacks to", stored.size());
  if (claimed != unpacked_size)
    return fail(TC_ERR_MALFORMED, "compressed slice says it holds {} bytes when its manifest says {}", claimed,
                unpacked_size);
  return {};
}

}  // namespace

Result<Bundle> Bundle::pack(Manifest manifest, std::vector<Bytes> stored) {
  TC_CHECK(check_limits(manifest, stored));
  for (size_t i = 0; i < stored.size(); ++i) {
    auto& slice = manifest.slices[i];
    slice.stored_size = static_cast<uint32_t>(stored[i].size());
    slice.hash = ContentId::of(stored[i]);
    if (!slice.compressed) slice.unpacked_size = slice.stored_size;
    if (slice.compressed) TC_CHECK(check_content_size(stored[i], slice.unpacked_size));
  }
  auto head = std::make_shared<Head>();
  head->bytes = bundle_format::encode_manifest(manifest);
  if (head->bytes.size() > BundleLimits::manifest_bytes)
    return fail(TC_ERR_TOO_LARGE, "manifest of '{}' is {} bytes when at most {} are allowed", manifest.name,
                head->bytes.size(), BundleLimits::manifest_bytes);
  TC_CHECK(bundle_format::read_manifest(head->bytes));  // nothing is written that cannot be read back
  head->manifest = std::move(manifest);
  head->id = ContentId::of(head->bytes);
  Bundle bundle;
  bundle.head_ = std::move(head);
  bundle.carried_ = bundle_format::all_slices(stored.size());
  for (auto& slice : stored) bundle.stored_.push_back(std::make_shared<const Bytes>(std::move(slice)));
  return bundle;
}

// Hashes the manifest together with the first slice, which is faster. Never-seen code waits for both hashes.
Status Bundle::read_slices(Reader& in, Head& head) {
  bool named = false;
  stored_.resize(head.manifest.slices.size());
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!holds(i)) continue;
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
    stored_[i] = std::make_shared<const Bytes>(stored.begin(), stored.end());
  }
  if (!named) head.id = ContentId::of(head.bytes);
  return in.finish("bundle");
}

Result<Bundle> Bundle::read_parts(ByteView bytes, std::optional<uint64_t> carried) {
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
  auto head = std::make_shared<Head>();
  TC_ASSIGN(head->manifest, bundle_format::read_manifest(manifest));
  head->bytes.assign(manifest.begin(), manifest.end());
  const auto all = bundle_format::all_slices(head->manifest.slices.size());
  Bundle bundle;
  bundle.carried_ = carried.value_or(all);
  if ((bundle.carried_ & ~all) != 0)
    return fail(TC_ERR_MALFORMED, "bundle '{}' claims to carry slices {:x} when it has {}", head->manifest.name,
                bundle.carried_, head->manifest.slices.size());
  TC_CHECK(bundle.read_slices(in, *head));
  TC_ASSIGN(bundle.signatures_, bundle_format::read_signatures(in, head->manifest));
  bundle.head_ = std::move(head);
  return bundle;
}

Result<Bundle> Bundle::read(ByteView file) { return read_parts(file, std::nullopt); }

Result<Bundle> Bundle::read_carried(ByteView bytes, uint64_t carried, const ContentId& expected) {
  TC_ASSIGN(auto bundle, read_parts(bytes, carried));
  if (bundle.id() != expected)
    return fail(TC_ERR_MALFORMED, "bundle '{}' has content id {} when the frame names {}", bundle.manifest().name,
                bundle.id().short_hex(), expected.short_hex());
  return bundle;
}

const std::shared_ptr<const Bundle::Head>& Bundle::empty_head() {
  static const auto head = std::make_shared<const Head>();
  return head;
}

ByteView Bundle::stored(size_t slice) const noexcept {
  return slice < stored_.size() && stored_[slice] != nullptr ? ByteView(*stored_[slice]) : ByteView{};
}

Result<Bytes> Bundle::unpack(size_t slice) const {
  if (slice >= stored_.size() || !holds(slice))
    return fail(TC_ERR_NOT_FOUND, "slice {} of '{}' is not in this copy of the bundle", slice, manifest().name);
  const auto& about = manifest().slices[slice];
  if (!about.compressed) return *stored_[slice];
  return decompress(*stored_[slice], about.unpacked_size);
}

std::optional<size_t> Bundle::find(SliceRole role, SliceForm form, const TargetTriple& node) const noexcept {
  for (size_t i = 0; i < manifest().slices.size(); ++i) {
    const auto& s = manifest().slices[i];
    if (s.role == role && s.form == form && holds(i) && s.triple.runs_on(node)) return i;
  }
  return std::nullopt;
}

uint64_t Bundle::useful_for(const TargetTriple& node) const noexcept {
  uint64_t which = 0;
  for (size_t i = 0; i < manifest().slices.size(); ++i) {
    const auto& s = manifest().slices[i];
    if (s.role == SliceRole::target && holds(i) && s.triple.runs_on(node)) which |= uint64_t{1} << i;
  }
  if (which == 0) return 0;
  for (size_t i = 0; i < manifest().slices.size(); ++i)
    if (manifest().slices[i].role == SliceRole::bundled && holds(i)) which |= uint64_t{1} << i;
  return which;
}

bool Bundle::lists(const TargetTriple& node) const noexcept {
  return std::ranges::any_of(manifest().slices,
                             [&](const auto& s) { return s.role == SliceRole::target && s.triple.runs_on(node); });
}

bool Bundle::has_bundled(std::string_view name) const noexcept {
  return std::ranges::any_of(manifest().slices,
                             [&](const auto& s) { return s.role == SliceRole::bundled && s.cpu == name; });
}

Result<Bundle> Bundle::bundled(std::string_view name) const {
  for (size_t i = 0; i < manifest().slices.size(); ++i) {
    const auto& s = manifest().slices[i];
    if (s.role != SliceRole::bundled || s.cpu != name || !holds(i)) continue;
    TC_ASSIGN(const auto bytes, unpack(i));
    auto bundle = read(bytes);
    if (!bundle)
      return context(fmt::format("bundled ifunc '{}' of ifunc '{}'", name, manifest().name), std::move(bundle).error());
    if (bundle->manifest().name != name)
      return fail(TC_ERR_MALFORMED, "bundled ifunc '{}' of ifunc '{}' is ifunc '{}'", name, manifest().name,
                  bundle->manifest().name);
    for (auto signature : signatures_) {
      if (signature.covers != i) continue;
      signature.covers = CodeSignature::whole_bundle;
      if (!bundle->add_signature(signature)) break;  // it has CodeSignature::most
    }
    return bundle;
  }
  return fail(TC_ERR_NOT_FOUND, "ifunc '{}' has no bundled ifunc '{}'", manifest().name, name);
}

size_t Bundle::size_for(uint64_t which) const noexcept {
  size_t size = bundle_format::header_bytes + head_->bytes.size();
  for (size_t i = 0; i < stored_.size(); ++i)
    if ((which & carried_) >> i & 1) size += stored_[i]->size();
  return size + bundle_format::size_of_signatures(signatures_.size());
}

Bytes Bundle::bytes_for(uint64_t which) const {
  Bytes out;
  out.reserve(size_for(which));
  Writer w(out);
  w.u32(bundle_format::magic).u32(static_cast<uint32_t>(head_->bytes.size())).bytes(head_->bytes);
  for (size_t i = 0; i < stored_.size(); ++i)
    if ((which & carried_) >> i & 1) w.bytes(*stored_[i]);
  bundle_format::write_signatures(w, signatures_);
  return out;
}

Status Bundle::add_signature(const CodeSignature& signature) {
  if (std::ranges::find(signatures_, signature) != signatures_.end()) return {};
  if (!bundle_format::can_be_covered(signature.covers, manifest()))
    return fail(TC_ERR_INVALID, "bundle '{}': a signature covers slice {}, which is no bundled ifunc", manifest().name,
                signature.covers);
  if (signatures_.size() == CodeSignature::most)
    return fail(TC_ERR_LIMIT, "bundle '{}' has {} signatures, and more are not allowed", manifest().name,
                signatures_.size());
  signatures_.push_back(signature);
  return {};
}

void Bundle::merge(const Bundle& other) {
  if (other.id() != id()) return;
  for (size_t i = 0; i < stored_.size(); ++i)
    if (!holds(i) && other.holds(i)) stored_[i] = other.stored_[i];
  carried_ |= other.carried_;
  for (const auto& signature : other.signatures_)
    if (!add_signature(signature)) return;
}

Result<Bytes> compress(ByteView bytes) {
  Bytes out(ZSTD_compressBound(bytes.size()));
  const auto size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 19);
  if (ZSTD_isError(size)) return fail(TC_ERR_INTERNAL, "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

Result<Bytes> decompress(ByteView stored, size_t unpacked_size) {
  TC_CHECK(check_content_size(stored, unpacked_size));
  if (unpacked_size > BundleLimits::slice_bytes)
    return fail(TC_ERR_TOO_LARGE, "slice unpacks to {} bytes when at most {} are allowed", unpacked_size,
                BundleLimits::slice_bytes);
  Bytes out(unpacked_size);
  const auto size = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(size))
    return fail(TC_ERR_MALFORMED, "compressed slice does not unpack: {}", ZSTD_getErrorName(size));
  if (size != unpacked_size)
    return fail(TC_ERR_MALFORMED, "slice unpacks to {} bytes when its manifest says {}", size, unpacked_size);
  return out;
}

}  // namespace tc
