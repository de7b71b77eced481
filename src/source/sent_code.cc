// SPDX-License-Identifier: Apache-2.0
#include "source/sent_code.h"

#include "wire/frame.h"

namespace tc::source {

namespace {
constexpr size_t remembered_limit = size_t{1} << 20;  // as encoded: what is larger is not held twice

// ---- Memory. A bundle is many small pieces: where slices are small, it takes several times its size in a file.

constexpr size_t allocation_bytes = 16;                                // that the allocator takes besides
constexpr size_t shared_bytes = 2 * sizeof(void*) + allocation_bytes;  // that std::shared_ptr counts in

size_t memory_of(size_t capacity) noexcept { return capacity != 0 ? capacity + allocation_bytes : 0; }

size_t memory_of(const std::string& text) noexcept {
  return text.capacity() > std::string().capacity() ? memory_of(text.capacity()) : 0;
}

size_t memory_of(const std::vector<std::string>& texts) noexcept {
  size_t bytes = memory_of(texts.capacity() * sizeof(std::string));
  for (const auto& text : texts) bytes += memory_of(text);
  return bytes;
}

size_t memory_of(const Manifest& manifest) noexcept {
  size_t bytes = memory_of(manifest.name) + memory_of(manifest.tool);
  for (const auto* const names : {&manifest.dependencies, &manifest.imports, &manifest.exports, &manifest.against})
    bytes += memory_of(*names);
  bytes += memory_of(manifest.slices.capacity() * sizeof(Slice));
  for (const auto& slice : manifest.slices) bytes += memory_of(slice.triple.text) + memory_of(slice.cpu);
  return bytes;
}

}  // namespace

// As if no other copy of the bundle shared its parts.
size_t SentCode::cost(const Bundle& bundle) noexcept {
  const auto& manifest = bundle.manifest();
  size_t bytes = shared_bytes + sizeof(Manifest) + sizeof(ContentId) + sizeof(Bytes) + memory_of(manifest);
  bytes += memory_of(bundle.size_for(0));  // the manifest as it travels
  bytes += memory_of(manifest.slices.size() * sizeof(std::shared_ptr<const Bytes>));
  for (size_t i = 0; i < manifest.slices.size(); ++i)
    if (bundle.holds(i)) bytes += shared_bytes + sizeof(Bytes) + memory_of(bundle.stored(i).size());
  bytes += memory_of(bundle.signatures().capacity() * sizeof(CodeSignature));
  const size_t in_list = sizeof(Kept) + 2 * sizeof(void*) + allocation_bytes;
  const size_t in_table = sizeof(ContentId) + 4 * sizeof(void*) + allocation_bytes;  // with its bucket
  return bytes + in_list + in_table;
}

void SentCode::keep(const Bundle& sent) {
  const auto known = by_content_.find(sent.id());
  if (known != by_content_.end() && (sent.carried() & ~known->second->bundle.carried()) == 0)
    return (void)add_signatures(sent);
  Bundle bundle = sent;
  if (known != by_content_.end()) {
    const auto& kept = known->second->bundle;
    for (const auto& signature : kept.signatures()) (void)bundle.add_signature(signature);
    forget(known->second);  // this one holds more slices
  }
  kept_.push_back({std::move(bundle), 0});
  by_content_[sent.id()] = std::prev(kept_.end());
  recount(kept_.back());
}

void SentCode::recount(Kept& kept) noexcept {
  bytes_ -= kept.bytes;
  kept.bytes = cost(kept.bundle);
  bytes_ += kept.bytes;
  while (bytes_ > budget_) forget(kept_.begin());
}

bool SentCode::add_signatures(const Bundle& bundle) {
  const auto known = by_content_.find(bundle.id());
  if (known == by_content_.end()) return false;
  auto& kept = *known->second;
  const auto before = kept.bundle.signatures().size();
  for (const auto& signature : bundle.signatures()) (void)kept.bundle.add_signature(signature);
  const bool has_new = kept.bundle.signatures().size() != before;
  recount(kept);
  return has_new;
}

void SentCode::forget(Order::iterator kept) noexcept {
  bytes_ -= kept->bytes;
  by_content_.erase(kept->bundle.id());
  kept_.erase(kept);
}

const Bundle* SentCode::find(const ContentId& id) const noexcept {
  const auto known = by_content_.find(id);
  return known != by_content_.end() ? &known->second->bundle : nullptr;
}

std::shared_ptr<const Bytes> SentCode::section(const Bundle& bundle, uint64_t which) {
  if (last_.bytes != nullptr && last_.id == bundle.id() && last_.which == which &&
      last_.signatures == bundle.signatures())
    return last_.bytes;
  const auto slices = bundle.bytes_for(which);
  Bytes section;
  wire::append_code(section, {bundle.id(), which, static_cast<uint32_t>(slices.size())}, slices);
  auto bytes = std::make_shared<const Bytes>(std::move(section));
  if (bytes->size() <= remembered_limit) last_ = {bundle.id(), which, bundle.signatures(), bytes};
  return bytes;
}

}  // namespace tc::source
