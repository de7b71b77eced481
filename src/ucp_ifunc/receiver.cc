// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/receiver.h"

#include <cstring>
#include <new>
#include <sstream>
#include <utility>

#include "target/executor.h"
#include "target/float_state.h"
#include "wire/frame.h"

namespace tc::ucp {

namespace {

// What <threechains/ifunc.h> can mean where there are no nodes: one call, on the stack of the thread that runs it.
class CallHost final : public target::IfuncHost {
 public:
  explicit CallHost(spdlog::logger& log) noexcept : log_(log), before_(std::exchange(target::current_host, this)) {}
  ~CallHost() {
    target::current_host = before_;
    target::leaving = before_leaving_;
  }
  CallHost(const CallHost&) = delete;
  CallHost& operator=(const CallHost&) = delete;

  void* data(std::string_view, size_t*) noexcept override { return nullptr; }
  tc_status_t reply(ByteView) noexcept override { return TC_ERR_UNSUPPORTED; }
  tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_ERR_UNSUPPORTED; }
  tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_ERR_UNSUPPORTED; }
  tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_ERR_UNSUPPORTED; }
  void fail(int32_t code, std::string_view message) noexcept override {
    if (failed) return;
    failed = true;
    fail_code = code;
    fail_message = message;
  }
  void log(int level, std::string_view message) noexcept override {
    constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                    spdlog::level::err};
    log_.log(levels[level >= 0 && level < 4 ? level : 3], "an ifunc says: {}", message);
  }

  bool failed = false;
  int32_t fail_code = 0;
  std::string fail_message;

 private:
  spdlog::logger& log_;
  target::IfuncHost* const before_;
  const uint8_t before_leaving_ = target::leaving;
};

struct AlignedFree {
  std::align_val_t alignment;
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, alignment); }
};

}  // namespace

void set_up_policy(target::Policy& policy, const char* allowed) {
  if (allowed == nullptr) {
    policy.allow_library("*");
    policy.allow_process_symbol("*");
    return;
  }
  std::istringstream entries(allowed);
  for (std::string entry; std::getline(entries, entry, ',');) {
    if (entry.empty()) continue;
    if (entry == "*" || entry.find(".so") != std::string::npos) policy.allow_library(entry);
    if (entry.find(".so") == std::string::npos) policy.allow_process_symbol(entry);
  }
}

Status set_up_exports(target::Policy& policy, const char* rules) {
  std::istringstream entries(rules != nullptr ? rules : "");
  for (std::string entry; std::getline(entries, entry, ',');) {
    if (entry.empty()) continue;
    if (entry.find('@') != std::string::npos)
      return fail(TC_ERR_INVALID,
                  "'{}' asks for a host, and frames in slots do not say where they come from: it is "
                  "SYMBOL or PREFIX*",
                  entry);
    TC_CHECK(policy.allow_export(entry));
  }
  return {};
}

Receiver::Receiver(const char* allowed, std::shared_ptr<spdlog::logger> log) : log_(std::move(log)) {
  set_up_policy(policy_, allowed);
}

Result<target::Code*> Receiver::learn(const slot::Header& header, const std::byte* payload, Use& use) {
  if ((header.flags & slot::flag_code) == 0)
    return fail(TC_ERR_NOT_FOUND,
                "a frame names code {:016x} that is not held here and did not come along: this process restarted, or "
                "refused the code, after its sender was done with sending it; the sender calls ucp_ifunc_forget(ep)",
                __builtin_bswap64(header.id[0]));
  const auto there = slot::code_of(header, payload);
  const Bytes copy = wire::private_copy(there);
  TC_ASSIGN(const auto code, wire::decode_code(copy));
  if (slot::short_id(code.head.id) != header.id)
    return fail(TC_ERR_MALFORMED, "a frame names code {:016x} when the code that comes along is {}",
                __builtin_bswap64(header.id[0]), code.head.id.short_hex());
  if (!code.head.chain.empty())
    return fail(TC_ERR_DENIED, "a frame is sent on behalf of {} others, which nodes alone can judge",
                code.head.chain.keys().size());
  TC_ASSIGN(auto bundle, Bundle::read_carried(code.bundle, code.head.carried, code.head.id));
  // A newer version of a library frees the older one, to which another thread may just have found its way.
  if (bundle.manifest().has(entry_library)) use.begin(*this);
  const std::lock_guard lock(mutex_);
  if (auto* const held = held_.find(header.id)) return held;  // another thread was quicker
  return load(std::move(bundle));
}

Result<target::Code*> Receiver::load(Bundle bundle) {
  if (store_ == nullptr) {
    target::CodeStoreOptions options;
    options.budget_bytes = code_budget;
    options.keep_replaced = true;
    options.warn = [log = log_](const std::string& what) { log->warn("{}", what); };
    TC_ASSIGN(store_,
              target::CodeStore::create(std::move(options), policy_, [this](target::Code& code) { forget(code); }));
  }
  const bool is_library = bundle.manifest().has(entry_library);
  const bool is_new = store_->find(bundle.id()) == nullptr;
  target::Sender sender;
  sender.assembly = target::Assembly::allowed;  // each sender may run any code here
  TC_ASSIGN(auto* const code, store_->load(std::move(bundle), sender));
  if (!is_library) {
    code->pinned = true;  // for good: its callers are not counted, unless it is replaceable
    held_.add(*code);
  }
  by_name_.insert_or_assign(code->name(), code);
  housekeeping();  // starts compiling for this CPU
  if (is_new)
    log_->info("{} '{}' ({}) came, {} bytes{}", is_library ? "library" : "ifunc", code->name(), code->id().short_hex(),
               code->bytes,
               is_library ? fmt::format(", exports {}", fmt::join(code->bundle->manifest().exports, ", ")) : "");
  return code;
}

// A library whose newer version is here. Called by the store, inside load(), which gives its name to the newer one; where
// memory runs out before that, nothing has the name.
void Receiver::forget(const target::Code& code) {
  by_name_.erase(code.name());
  log_->info("library '{}' ({}) was replaced", code.name(), code.id().short_hex());
}

void Receiver::free_left_now() noexcept {
  // Again when another thread ended a call while this one held the lock, and so could not take it.
  while (executions_.is_over()) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    housekeeping();
  }
}

void Receiver::housekeeping() noexcept {
  store_->housekeeping();
  while (true) {
    if (executions_.waiting()) {
      if (!executions_.is_over()) return;
      store_->free_replaced(std::exchange(awaited_, 0));
      executions_.end();
    }
    awaited_ = store_->replaced();
    if (awaited_ == 0) return;
    executions_.begin();
  }
}

std::optional<Bundle> Receiver::bundle_named(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return *found->second->bundle;
}

target::CodeStoreStats Receiver::stats() {
  const std::lock_guard lock(mutex_);
  if (store_ == nullptr) return {};
  housekeeping();
  return store_->stats();
}

Status Receiver::run(target::Code& code, std::byte* payload, size_t size, void* target_args) {
  const size_t alignment = size_t{1} << code.alignment_log2;
  alignas(64) std::byte small[copied_payload];
  std::unique_ptr<std::byte, AlignedFree> copy(nullptr, AlignedFree{std::align_val_t{alignment}});
  if (size <= sizeof small && alignment <= 64) {
    std::memcpy(small, payload, size);
    payload = small;
  } else if (reinterpret_cast<uintptr_t>(payload) % alignment != 0) {
    copy.reset(static_cast<std::byte*>(::operator new(size, std::align_val_t{alignment}, std::nothrow)));
    if (copy == nullptr) return fail(TC_ERR_NO_MEMORY, "no memory for a payload of {} bytes", size);
    std::memcpy(copy.get(), payload, size);
    payload = copy.get();
  }
  CallHost host(*log_);
  Use use;
  auto entry = code.entry.load(std::memory_order_acquire);
  if (code.replaceable.load(std::memory_order_acquire)) {
    use.begin(*this);
    entry = code.entry.load(std::memory_order_acquire);  // the one before may be gone
  }
  const auto floats = target::FloatState::now();
  entry(payload, size, target_args);
  floats.restore();
  if (host.failed) [[unlikely]]
    return fail(TC_ERR_IFUNC, "ifunc '{}' failed with code {}: {}", code.name(), host.fail_code, host.fail_message);
  return {};
}

}  // namespace tc::ucp
