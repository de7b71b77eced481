// SPDX-License-Identifier: Apache-2.0
#include "target/code_store.h"

#include <threechains/ifunc.h>

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "wire/abi_names.h"

namespace tc::target {

namespace {

// Looking for what is not there then mostly ends at an empty bucket, and not at other codes' records, long out of the
// CPU's caches.
constexpr float sparse = 0.25F;

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

void EvictionQueue::add(Code& code) {
  code.queue_key = code.last_used;
  queue_.emplace(code.queue_key, &code);
}

void EvictionQueue::remove(Code& code) noexcept { queue_.erase({code.queue_key, &code}); }

Code* EvictionQueue::least_recent(const Code* spared) {
  for (auto it = queue_.begin(); it != queue_.end();) {
    Code* const code = it->second;
    if (code->last_used != it->first) {
      auto node = queue_.extract(it++);
      code->queue_key = code->last_used;
      node.value().first = code->queue_key;
      const auto put = queue_.insert(std::move(node)).position;
      // A code that was put before the place where we stand (a tick that ran backwards) must not be missed.
      if (it == queue_.end() || *put < *it) it = put;
      continue;
    }
    if (!code->pinned && code != spared) return code;
    ++it;
  }
  return nullptr;
}

// ---- What is held, what it costs, what must go

Result<std::unique_ptr<CodeStore>> CodeStore::create(CodeStoreOptions options, Policy& policy, OnFree on_free) {
  if (!on_free) on_free = [](Code&) {};
#ifdef TC_NO_JIT
  // Built without the plug-in, so there is none to look for; the operator may still name one.
  if (options.jit_plugin.empty()) options.use_bitcode = false;
#endif
  using Kind = memory::Arena::Kind;
  TC_ASSIGN(auto arena, memory::Arena::create(policy.is_foreign() ? Kind::exported : Kind::shared));
  auto cache = open_cache(options);
  return std::unique_ptr<CodeStore>(
      new CodeStore(std::move(options), policy, std::move(on_free), std::move(arena), std::move(cache)));
}

CodeStore::CodeStore(CodeStoreOptions options, Policy& policy, OnFree on_free, std::unique_ptr<memory::Arena> arena,
                     std::unique_ptr<DiskCache> cache)
    : options_(std::move(options)),
      policy_(policy),
      on_free_(std::move(on_free)),
      linker_(options_, policy, std::move(arena), std::move(cache)),
      tuner_(linker_.builder(), policy, options_.triple) {
  codes_.max_load_factor(sparse);
}

Code* CodeStore::find(const ContentId& id) noexcept {
  const auto found = codes_.find(id);
  return found != codes_.end() ? found->second.get() : nullptr;
}

void CodeStore::each(FunctionRef<void(Code&)> show) const {
  for (const auto& [id, code] : codes_) show(*code);
}

namespace {

Result<Code*> about_ifunc(const std::string& name, Result<Code*> kept) {
  if (!kept) return context(fmt::format("ifunc '{}'", name), std::move(kept).error());
  return kept;
}

// The entry point of code that is held and not linked. No call is to come here.
void not_linked(void*, size_t, void*) {
  tc_fail(TC_ERR_INTERNAL, "this code is held for cells, and runs nowhere else");
}

}  // namespace

Result<Code*> CodeStore::load(Bundle bundle, const Sender& from, Bytes object) {
  const std::string name = bundle.manifest().name;
  auto* const held = find(bundle.id());
  if (held == nullptr) return about_ifunc(name, load_new(std::move(bundle), from, std::move(object)));
  add_slices(*held, bundle);
  if (held->is_linked()) return held;
  if (auto linked = link_held(*held, from); !linked) return about_ifunc(name, fail(std::move(linked).error()));
  return held;
}

Result<Code*> CodeStore::hold(Bundle bundle, const Sender& from, Bytes object) {
  if (auto* const held = find(bundle.id()); held != nullptr) return add_slices(*held, bundle);
  const std::string name = bundle.manifest().name;
  return about_ifunc(name, hold_new(std::move(bundle), from, std::move(object)));
}

Code* CodeStore::add_slices(Code& code, const Bundle& bundle) {
  if ((bundle.carried() & ~code.bundle->carried()) == 0) {
    if (bundle.signatures() != code.bundle->signatures()) code.bundle->merge(bundle);
    return &code;
  }
  tuner_.cancel(code);  // its thread reads the bundle that changes here
  code.bundle->merge(bundle);
  count(code);
  tune_later(code);
  return &code;
}

Result<std::unique_ptr<Code>> CodeStore::make_code(Bundle bundle, const Sender& from, Bytes object) {
  const auto& manifest = bundle.manifest();
  if (manifest.abi_version != TC_IFUNC_ABI)
    return fail(TC_ERR_VERSION,
                "it was built for version {} of <threechains/ifunc.h> when this node has version {}: {}",
                manifest.abi_version, TC_IFUNC_ABI, "build it again, or upgrade the node");
  TC_CHECK(check_exports(manifest.exports, from));
  auto code = std::make_unique<Code>();
  code->entry.store(not_linked, std::memory_order_relaxed);
  code->assembly = from.assembly;
  code->alignment_log2 = manifest.payload_alignment_log2;
  code->concurrent = manifest.has(entry_concurrent);
  code->has_other_threads = options_.has_other_threads;
  code->settle_lane();
  code->bundle = std::make_unique<Bundle>(std::move(bundle));
  code->sender = from.label.empty() ? from.host : from.label;
  code->compiled = std::move(object);
  if (code->bundle_bytes() > options_.budget_bytes)
    return fail(TC_ERR_LIMIT, "its bundle takes {} bytes when this node keeps {} bytes of code in all",
                code->bundle_bytes(), options_.budget_bytes);
  return code;
}

Result<Code*> CodeStore::load_new(Bundle bundle, const Sender& from, Bytes object) {
  const uint64_t begin = now_ns();
  TC_ASSIGN(auto code, make_code(std::move(bundle), from, std::move(object)));
  TC_ASSIGN(code->libraries, policy_.open_libraries(code->bundle->manifest().dependencies));
  TC_ASSIGN(auto linked, link(*code));
  take_over(*code, std::move(linked));
  TC_ASSIGN(auto* const kept, add(std::move(code), from));
  kept->load_ns = now_ns() - begin;
  return kept;
}

Result<Code*> CodeStore::hold_new(Bundle bundle, const Sender& from, Bytes object) {
  TC_ASSIGN(auto code, make_code(std::move(bundle), from, std::move(object)));
  TC_CHECK(policy_.check_libraries(code->bundle->manifest().dependencies));
  TC_CHECK(linker_.check_has_slice(*code));
  for (const auto& symbol : code->bundle->manifest().exports) code->exports.emplace(symbol, nullptr);
  return add(std::move(code), from);
}

// A library that cannot take the names that it exports goes: it would be linked, and nothing could be bound to it.
Status CodeStore::link_held(Code& code, const Sender& from) {
  const uint64_t begin = now_ns();
  code.assembly = from.assembly;
  TC_CHECK(check_exports(code.bundle->manifest().exports, from));
  TC_ASSIGN(code.libraries, policy_.open_libraries(code.bundle->manifest().dependencies));
  TC_ASSIGN(auto linked, link(code));
  take_over(code, std::move(linked));
  count(code);
  if (code.is_library())
    if (auto bound = bind_library(code, from); !bound) {
      free(code);
      return bound;
    }
  tune_later(code);
  code.load_ns = now_ns() - begin;
  return {};
}

// What is linked, or held.
Result<Code*> CodeStore::add(std::unique_ptr<Code> code, const Sender& from) {
  TC_CHECK(make_room(*code));
  // All that needs memory comes before others can be bound to it.
  decltype(codes_) made;
  auto& kept = *made.emplace(code->id(), std::move(code)).first->second;
  codes_.reserve(codes_.size() + 1);
  if (kept.is_library()) TC_CHECK(bind_library(kept, from));
  // It will run at once, but the executor has not counted that yet: it is as recent as any.
  kept.last_used = std::max(queue_.newest(), last_loaded_ != nullptr ? last_loaded_->last_used : 0);
  if (!kept.is_library()) queue_.add(kept);  // one that goes would leave its users in the air
  codes_.insert(made.extract(made.begin()));
  count(kept);
  last_loaded_ = &kept;
  tune_later(kept);
  ++stats_.loads;
  return &kept;
}

Status CodeStore::make_room(const Code& code) {
  const size_t bytes = code.total_bytes();
  while (stats_.bytes + bytes > options_.budget_bytes) {
    Code* const victim = bytes > options_.budget_bytes ? nullptr : queue_.least_recent(nullptr);
    if (victim == nullptr)
      return fail(TC_ERR_LIMIT, "it takes {} bytes when this node keeps {} bytes of code and {} of them are in use: {}",
                  bytes, options_.budget_bytes, stats_.bytes, "raise the setting code-budget");
    free(*victim);
  }
  return {};
}

void CodeStore::tune_later(Code& code) {
  // A library stays as it is: its users are bound to its addresses, and its data to them.
  if (!options_.tune || !options_.use_bitcode || code.is_library() || !code.is_linked()) return;
  if (code.tier.load(std::memory_order_relaxed) == Tier::tuned) return;
  if (code.bundle->find(SliceRole::target, SliceForm::bitcode, options_.triple)) tuner_.add(code);
}

void CodeStore::count(Code& code) noexcept {
  const size_t now = code.total_bytes();
  stats_.bytes = stats_.bytes - code.bytes + now;
  code.bytes = now;
}

void CodeStore::free(Code& code) {
  withdraw(code);
  on_free_(code);
  tuner_.cancel(code);
  adopt();  // its tuned code, too, if that was published just now
  // What a call may be in is not freed for lack of memory to keep it.
  if (options_.keep_replaced) replaced_.reserve(replaced_.size() + code.retired.size() + 2);
  if (!uses_.empty()) outlived_.reserve(outlived_.size() + 1);
  queue_.remove(code);
  std::erase(retiring_, &code);
  if (last_loaded_ == &code) last_loaded_ = nullptr;
  put_aside_all(code);
  stats_.bytes -= code.bytes;
  ++stats_.evictions;
  const auto found = codes_.find(code.id());
  if (!uses_.empty()) outlived_.push_back({last_use_, std::move(found->second)});
  codes_.erase(found);
}

uint64_t CodeStore::begin_use(Code& code) {
  uses_.insert(last_use_ + 1);
  ++code.in_use;
  return ++last_use_;
}

void CodeStore::end_use(Code& code, uint64_t use) noexcept {
  --code.in_use;
  uses_.erase(use);
  std::erase_if(outlived_, [&](const Outlived& one) { return uses_.empty() || *uses_.begin() > one.after; });
}

void CodeStore::evict(const ContentId& id) {
  if (const auto found = codes_.find(id); found != codes_.end()) free(*found->second);
}

void CodeStore::housekeeping() noexcept try {
  adopt();
  if (!retiring_.empty() || stats_.bytes > options_.budget_bytes) retire();
  tuner_.start();
  linker_.prepare();
} catch (const std::bad_alloc&) {  // next time
}

bool CodeStore::wait_until_tuned(uint64_t deadline_ms) {
  const bool done = tuner_.wait(deadline_ms);
  housekeeping();
  return done;
}

void* CodeStore::frames_of(const Code& code, EntryPoint entry) {
  adopt();
  void* frames = nullptr;
  code.each_memory([&](const CodeMemory& memory) {
    if (memory.jitted.symbol(abi_names::main) == reinterpret_cast<void*>(entry)) frames = memory.jitted.frames();
  });
  return frames;
}

Status CodeStore::warm_up() { return linker_.warm_up(); }

bool CodeStore::lacks_object(const Bundle& bundle) const noexcept { return linker_.lacks_object(bundle); }

CodeStoreStats CodeStore::stats() const noexcept {
  auto now = stats_;
  now.codes = codes_.size();
  now.object_loads = linker_.object_loads();
  now.baseline_compiles = linker_.baseline_compiles();
  now.retired = replaced_.size();
  if (!options_.keep_replaced)
    for (const auto* code : retiring_) now.retired += code->retired.size();
  now.cache_hits = linker_.builder().cache_hits();
  now.cache_misses = linker_.builder().cache_misses();
  return now;
}

// ---- Libraries: what they export, and binding their users anew when a newer version comes. It happens between two calls, so
// that no call sees both versions.

Result<CodeLinker::Linked> CodeStore::link(const Code& code) {
  auto linked = linker_.link(code);
  if (!linked && linked.error().code == TC_ERR_UNRESOLVED) linked.error().message += about_libraries(code);
  return linked;
}

// What an unresolved symbol may come from.
std::string CodeStore::about_libraries(const Code& code) {
  if (code.is_library()) return "; libraries that are sent do not link to each other";
  std::string text;
  for (const auto& name : code.bundle->manifest().against) {
    const auto* const held = exporting(name);
    text += held == nullptr
                ? fmt::format("; it was built against library '{}', which is not on this node", name)
                : fmt::format("; it was built against library '{}', of which this node holds version {}, exporting {}",
                              name, held->id().short_hex(), fmt::join(held->bundle->manifest().exports, ", "));
  }
  return text;
}

Status CodeStore::check_exports(const std::vector<std::string>& symbols, const Sender& from) const {
  for (const auto& symbol : symbols) {
    TC_CHECK(policy_.may_export(symbol, from.host));
    if (from.may_export) TC_CHECK(from.may_export(symbol));
  }
  return {};
}

std::vector<const Code*> CodeStore::libraries() const {
  std::vector<const Code*> found;
  for (const auto& [id, code] : codes_)
    if (!code->exports.empty()) found.push_back(code.get());
  return found;
}

Code* CodeStore::exporting(const std::string& name) {
  const auto found = std::ranges::find_if(
      codes_, [&](const auto& entry) { return !entry.second->exports.empty() && entry.second->name() == name; });
  return found != codes_.end() ? found->second.get() : nullptr;
}

// Of those that are linked: the others are bound to nothing yet.
std::vector<Code*> CodeStore::users_of(const Exports& one, const Exports& other) {
  std::vector<Code*> users;
  for (const auto& [id, code] : codes_) {
    const auto& imports = code->bundle->manifest().imports;
    const auto is_exported = [&](const auto& symbol) { return one.contains(symbol) || other.contains(symbol); };
    if (code->is_linked() && !code->is_library() && std::ranges::any_of(imports, is_exported))
      users.push_back(code.get());
  }
  return users;
}

void CodeStore::take_over(Code& code, CodeLinker::Linked linked) {
  put_aside(code, std::exchange(code.memory, std::move(linked.memory)));
  put_aside(code, std::exchange(code.first, {}));
  code.variables = std::move(linked.variables);
  code.exports = std::move(linked.exports);
  // Before the entry point, so that a thread that reads the entry point also reads this.
  if (linked.replaceable) code.replaceable.store(true, std::memory_order_release);
  code.entry.store(linked.entry, std::memory_order_release);
  code.tier.store(linked.tier, std::memory_order_release);
  code.settle_lane();
}

namespace {

// What all libraries exported before comes back, unless it is told to stay away.
class ExportsUntilBound {
 public:
  ExportsUntilBound(Policy& policy, Exports before) noexcept : policy_(policy), before_(std::move(before)) {}
  ~ExportsUntilBound() {
    if (!stays_) policy_.restore_exports(std::move(before_));
  }
  ExportsUntilBound(const ExportsUntilBound&) = delete;
  ExportsUntilBound& operator=(const ExportsUntilBound&) = delete;
  void stay() noexcept { stays_ = true; }

 private:
  Policy& policy_;
  Exports before_;
  bool stays_ = false;
};

}  // namespace

// All or nothing, also when memory runs out: every user is linked to the new version before any is switched over.
Status CodeStore::bind_library(Code& library, const Sender& from) {
  auto* const before = exporting(library.name());
  const Exports old = before != nullptr ? before->exports : Exports{};
  if (before != nullptr)
    if (auto allowed = check_exports(before->bundle->manifest().exports, from); !allowed)
      return context("it would take the place of the version that is here, for which its sender needs the same rights",
                     std::move(allowed).error());
  const auto users = users_of(old, library.exports);
  // Before any name means something else: what is being compiled is bound to the old version, or would be to a new one
  // that is refused after all.
  for (auto* user : users) tuner_.cancel(*user);
  adopt();
  auto all_before = policy_.replace_exports(old, library.exports);
  if (!all_before) return settle_users(users), fail(std::move(all_before).error());
  ExportsUntilBound exports(policy_, std::move(*all_before));
  auto linked = link_users(users);
  if (!linked) return settle_users(users), fail(std::move(linked).error());
  have_room_aside(users);
  exports.stay();
  for (size_t i = 0; i < users.size(); ++i) take_over(*users[i], std::move((*linked)[i]));
  stats_.rebinds += users.size();
  settle_users(users);
  ++library_changes_;
  if (before == nullptr || before == &library) return {};  // new, or only held until now
  before->exports.clear();                                 // others stand under those names now
  try {
    free(*before);
  } catch (const std::bad_alloc&) {  // it stays, and nothing is bound to it
  }
  return {};
}

Result<std::vector<CodeLinker::Linked>> CodeStore::link_users(const std::vector<Code*>& users) {
  std::vector<CodeLinker::Linked> linked;
  for (const auto* user : users) {
    auto bound = link(*user);
    if (!bound)
      return context(fmt::format("ifunc '{}', which uses it here, does not link to this version", user->name()),
                     std::move(bound).error());
    linked.push_back(std::move(*bound));
  }
  return linked;
}

// Without memory they are not tuned, and run as they are.
void CodeStore::settle_users(const std::vector<Code*>& users) noexcept try {
  for (auto* user : users) {
    count(*user);
    tune_later(*user);
  }
} catch (const std::bad_alloc&) {
}

// Its users go with it: they would call what is gone.
void CodeStore::withdraw(Code& library) {
  if (library.exports.empty()) return;
  ++library_changes_;
  for (auto* user : users_of(library.exports, {})) free(*user);
  policy_.withdraw_exports(std::exchange(library.exports, {}));
}

// ---- Code that was replaced: by tuned code, or because a library that it is linked to was. It stays until its last call has
// ended.

void CodeStore::adopt() {
  for (auto& [code, memory] : tuner_.finished()) {
    have_room_aside(std::span(&code, 1));
    auto before = std::exchange(code->memory, CodeMemory{.image = {}, .jitted = std::move(memory)});
    if (code->variables.empty())
      put_aside(*code, std::move(before));
    else
      code->first = std::move(before);
    count(*code);
    ++stats_.tuned_swaps;
  }
}

// For two pieces of each: what a call may be in is not freed for lack of memory to keep it.
void CodeStore::have_room_aside(std::span<Code* const> codes) {
  for (auto* code : codes) code->retired.reserve(code->retired.size() + 2);
  retiring_.reserve(retiring_.size() + codes.size());
  if (options_.keep_replaced) replaced_.reserve(replaced_.size() + 2 * codes.size());
}

// Where any thread may run code, what is not replaceable is pinned, and what it was before stays for good.
void CodeStore::put_aside(Code& code, CodeMemory memory) {
  if (memory.bytes() == 0) return;
  if (options_.keep_replaced && code.replaceable.load(std::memory_order_relaxed))
    return keep_replaced(std::move(memory));
  code.retired.push_back(std::move(memory));
  if (std::ranges::find(retiring_, &code) == retiring_.end()) retiring_.push_back(&code);
}

// Of code that is freed altogether. Where one thread runs everything, no call is inside it.
void CodeStore::put_aside_all(Code& code) {
  if (!options_.keep_replaced) return;
  for (auto& memory : code.retired) keep_replaced(std::move(memory));
  keep_replaced(std::move(code.memory));
  keep_replaced(std::move(code.first));
}

void CodeStore::keep_replaced(CodeMemory memory) {
  if (memory.bytes() == 0) return;
  stats_.bytes += memory.bytes();
  replaced_.push_back(std::move(memory));
}

void CodeStore::retire() {
  std::erase_if(retiring_, [this](Code* code) {
    if (code->pinned || code->in_use != 0) return false;
    code->retired.clear();
    count(*code);
    return true;
  });
  while (stats_.bytes > options_.budget_bytes) {
    Code* const victim = queue_.least_recent(nullptr);
    if (victim == nullptr) return;  // all of them run: next time
    free(*victim);
  }
}

void CodeStore::free_replaced(size_t count) noexcept {
  const auto end = replaced_.begin() + static_cast<ptrdiff_t>(count);
  for (auto it = replaced_.begin(); it != end; ++it) stats_.bytes -= it->bytes();
  replaced_.erase(replaced_.begin(), end);
}

}  // namespace tc::target
