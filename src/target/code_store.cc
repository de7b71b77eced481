// SPDX-License-Identifier: Apache-2.0
//
// CodeStore: what is held, what it costs, what must go.
#include "target/code_store.h"

#include <threechains/ifunc.h>

#include "base/clock.h"
#include "target/store.h"

namespace tc::target {

Code* Store::find(const ContentId& id) noexcept {
  const auto found = codes_.find(id);
  return found != codes_.end() ? found->second.get() : nullptr;
}

void Store::each(FunctionRef<void(const Code&)> show) const {
  for (const auto& [id, code] : codes_) show(*code);
}

Result<Code*> Store::load(Bundle bundle, const Sender& from, Bytes object) {
  if (const auto found = codes_.find(bundle.id()); found != codes_.end()) return add_slices(*found->second, bundle);
  const std::string name = bundle.manifest().name;
  auto loaded = load_new(std::move(bundle), from, std::move(object));
  if (!loaded) return context(fmt::format("ifunc '{}'", name), std::move(loaded).error());
  return loaded;
}

Code* Store::add_slices(StoredCode& code, const Bundle& bundle) {
  if ((bundle.carried() & ~code.bundle->carried()) == 0) {
    if (bundle.signatures() != code.bundle->signatures()) code.bundle->merge(bundle);
    return &code;
  }
  tuner_.cancel(code);  // its thread reads the bundle that changes here
  code.bundle->merge(bundle);
  count(code);
  if (code.tier.load(std::memory_order_relaxed) != Tier::tuned) tune_later(code);
  return &code;
}

Result<Code*> Store::load_new(Bundle bundle, const Sender& from, Bytes object) {
  const uint64_t begin = now_ns();
  const auto& manifest = bundle.manifest();
  if (manifest.abi_version != TC_IFUNC_ABI)
    return fail(TC_ERR_VERSION,
                "it was built for version {} of <threechains/ifunc.h> when this node has version {}: {}",
                manifest.abi_version, TC_IFUNC_ABI, "build it again, or upgrade the node");
  TC_CHECK(check_exports(manifest.exports, from));
  auto code = std::make_unique<StoredCode>();
  TC_ASSIGN(code->libraries, policy_.open_libraries(manifest.dependencies));
  code->alignment_log2 = manifest.payload_alignment_log2;
  code->bundle = std::make_unique<Bundle>(std::move(bundle));
  code->compiled = std::move(object);
  if (code->bundle_bytes() > options_.budget_bytes)
    return fail(TC_ERR_LIMIT, "its bundle takes {} bytes when this node keeps {} bytes of code in all",
                code->bundle_bytes(), options_.budget_bytes);
  TC_ASSIGN(auto linked, link(*code));
  take_over(*code, std::move(linked));
  TC_CHECK(make_room(*code));
  if (code->is_library()) TC_CHECK(bind_library(*code, from));
  // It will run at once, but the executor has not counted that yet: it is as recent as any.
  code->last_used = std::max(queue_.newest(), last_loaded_ != nullptr ? last_loaded_->last_used : 0);
  auto& kept = *codes_.emplace(code->id(), std::move(code)).first->second;
  if (!kept.is_library()) queue_.add(kept);  // one that goes would leave its users in the air
  count(kept);
  last_loaded_ = &kept;
  if (kept.tier.load(std::memory_order_relaxed) != Tier::tuned) tune_later(kept);
  ++stats_.loads;
  kept.load_ns = now_ns() - begin;
  return &kept;
}

Status Store::make_room(const StoredCode& code) {
  const size_t bytes = code.total_bytes();
  while (stats_.bytes + bytes > options_.budget_bytes) {
    StoredCode* const victim = bytes > options_.budget_bytes ? nullptr : queue_.least_recent(nullptr);
    if (victim == nullptr)
      return fail(TC_ERR_LIMIT, "it takes {} bytes when this node keeps {} bytes of code and {} of them are in use: {}",
                  bytes, options_.budget_bytes, stats_.bytes, "raise the setting code-budget");
    free(*victim);
  }
  return {};
}

void Store::tune_later(StoredCode& code) {
  // A library stays as it is: its users are bound to its addresses, and its data to them.
  if (!options_.tune || !options_.use_bitcode || code.is_library()) return;
  if (code.bundle->find(SliceRole::target, SliceForm::bitcode, host_)) tuner_.add(code);
}

void Store::count(StoredCode& code) noexcept {
  const size_t now = code.total_bytes();
  stats_.bytes = stats_.bytes - code.bytes + now;
  code.bytes = now;
}

void Store::free(StoredCode& code) {
  withdraw(code);
  on_evict_(code);
  tuner_.cancel(code);
  adopt();  // its tuned code, too, if that was published just now
  queue_.remove(code);
  std::erase(retiring_, &code);
  if (last_loaded_ == &code) last_loaded_ = nullptr;
  put_aside_all(code);
  stats_.bytes -= code.bytes;
  ++stats_.evictions;
  codes_.erase(codes_.find(code.id()));
}

void Store::evict(const ContentId& id) {
  if (const auto found = codes_.find(id); found != codes_.end()) free(*found->second);
}

void Store::housekeeping() noexcept {
  adopt();
  if (!retiring_.empty() || stats_.bytes > options_.budget_bytes) retire();
  if (options_.executions != nullptr) free_left();
  tuner_.start();
  arena_->prepare();
}

bool Store::wait_until_tuned(uint64_t deadline_ms) {
  const bool done = tuner_.wait(deadline_ms);
  housekeeping();
  return done;
}

Status Store::warm_up() {
  if (!options_.use_bitcode) return {};
  TC_ASSIGN(Jit* const jit, jit_.jit());
  return jit->warm_up();
}

CodeStoreStats Store::stats() const noexcept {
  auto now = stats_;
  now.codes = codes_.size();
  now.retired = outdated_.size() + leaving_.size();
  if (options_.executions == nullptr)
    for (const auto* code : retiring_) now.retired += code->retired.size();
  now.cache_hits = builder_.cache_hits();
  now.cache_misses = builder_.cache_misses();
  return now;
}

namespace {

// A cache that cannot be had costs time, so it is worth a line in the log, but no ifunc fails for it.
std::unique_ptr<DiskCache> open_cache(const CodeStoreOptions& options) {
  if (options.cache_dir.empty() || !options.use_bitcode) return nullptr;
  auto cache = DiskCache::open(options.cache_dir);
  if (cache) return std::move(*cache);
  if (options.warn)
    options.warn(fmt::format("compiled ifuncs are not kept in '{}': {}", options.cache_dir, cache.error().message));
  return nullptr;
}

}  // namespace

size_t StoredCode::bundle_bytes() const noexcept {
  const auto& m = bundle->manifest();
  size_t bytes = sizeof(StoredCode) + sizeof(Bundle) + bundle->size_for(bundle->carried()) + compiled.size();
  bytes += m.slices.size() * (sizeof(Slice) + sizeof(Bytes));
  for (const auto& name : m.imports) bytes += sizeof(std::string) + name.size();
  for (const auto& name : m.dependencies) bytes += sizeof(std::string) + name.size() + sizeof(void*);
  return bytes;
}

Result<std::unique_ptr<CodeStore>> CodeStore::create(CodeStoreOptions options, Policy& policy, OnEvict on_evict) {
  if (!on_evict) on_evict = [](Code&) {};
#ifdef TC_NO_JIT
  // Built without the plug-in, so there is none to look for; the operator may still name one.
  if (options.jit_plugin.empty()) options.use_bitcode = false;
#endif
  TC_ASSIGN(auto arena, memory::Arena::create(memory::Arena::Kind::shared));
  auto cache = open_cache(options);
  return std::make_unique<Store>(std::move(options), policy, std::move(on_evict), std::move(arena), std::move(cache));
}

}  // namespace tc::target
