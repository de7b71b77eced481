// SPDX-License-Identifier: Apache-2.0
#include "target/bitcode_builder.h"

#include "target/being_built.h"

namespace tc::target {

namespace {

std::string cache_key(const Jit& jit, const BitcodeSlice& slice, Effort effort) {
  return fmt::format("{} {} {} {} {}", slice.id.hex(), slice.about.hash.hex(), slice.about.triple.text,
                     effort == Effort::tuned ? "tuned" : "baseline", jit.fingerprint(effort));
}

Result<Bytes> bitcode_of(const BitcodeSlice& slice) {
  if (!slice.about.compressed) return slice.stored;
  return decompress(slice.stored, slice.about.unpacked_size);
}

}  // namespace

BitcodeSlice::BitcodeSlice(const Bundle& bundle, size_t slice, Assembly assembly, std::string sender)
    : name(bundle.manifest().name),
      sender(std::move(sender)),
      id(bundle.id()),
      about(bundle.manifest().slices[slice]),
      assembly(assembly) {
  const auto bytes = bundle.stored(slice);
  stored.assign(bytes.begin(), bytes.end());
}

std::optional<JitCode> BitcodeBuilder::link_cached(const std::string& key, const BitcodeSlice& slice,
                                                   const SymbolResolver& resolve) {
  const auto object = cache_->find(key);
  if (!object) return std::nullopt;
  auto code = host_.link(*object, slice.name, resolve, slice.variables);
  if (code) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    return std::move(*code);
  }
  // A symbol that is missing or forbidden says nothing against the object.
  if (code.error().code == TC_ERR_COMPILE) cache_->remove(key);
  return std::nullopt;
}

std::optional<JitCode> BitcodeBuilder::from_cache(const BitcodeSlice& slice, Effort effort,
                                                  const SymbolResolver& resolve) {
  if (cache_ == nullptr) return std::nullopt;
  const auto jit = host_.jit();
  if (!jit) return std::nullopt;
  const BeingBuilt built(node_, slice.name, slice.id, slice.sender);
  return link_cached(cache_key(**jit, slice, effort), slice, resolve);
}

template <class Value>
Result<Value> BitcodeBuilder::counted(Jit& jit, const BitcodeSlice& slice, Effort effort, auto work) {
  if (fatal_ != nullptr) TC_CHECK(fatal_->check(slice.sender));
  TC_ASSIGN(const auto bitcode, bitcode_of(slice));
  std::unique_lock one_at_a_time(tuned_mutex_, std::defer_lock);
  if (effort == Effort::tuned) one_at_a_time.lock();
  const auto before = jit.given_up(effort);
  Result<Value> result = work(bitcode);
  if (fatal_ != nullptr && jit.given_up(effort) != before) fatal_->count(slice.sender);
  return result;
}

Result<bool> BitcodeBuilder::may_exchange(const BitcodeSlice& slice) {
  TC_ASSIGN(Jit* const jit, host_.jit());
  const BeingBuilt built(node_, slice.name, slice.id, slice.sender);
  return counted<bool>(*jit, slice, Effort::tuned,
                       [&](const Bytes& bitcode) { return jit->may_exchange(bitcode, slice.name); });
}

Result<Bytes> BitcodeBuilder::compile(Jit& jit, const BitcodeSlice& slice, Effort effort) {
  return counted<Bytes>(jit, slice, effort,
                        [&](const Bytes& bitcode) { return jit.compile(bitcode, effort, slice.assembly, slice.name); });
}

Result<JitCode> BitcodeBuilder::build(const BitcodeSlice& slice, Effort effort, bool keep,
                                      const SymbolResolver& resolve) {
  TC_ASSIGN(Jit* const jit, host_.jit());
  const BeingBuilt built(node_, slice.name, slice.id, slice.sender);
  std::string key;
  if (cache_ != nullptr && keep) {
    key = cache_key(*jit, slice, effort);
    if (auto code = link_cached(key, slice, resolve)) return std::move(*code);
    misses_.fetch_add(1, std::memory_order_relaxed);
  }
  TC_ASSIGN(const auto object, compile(*jit, slice, effort));
  if (!key.empty())
    if (auto stored = cache_->store(key, object); !stored)
      warn(fmt::format("the compiled form of ifunc '{}' is not kept on disk: {}", slice.name, stored.error().message));
  return host_.link(object, slice.name, resolve, slice.variables);
}

}  // namespace tc::target
