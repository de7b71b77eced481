// SPDX-License-Identifier: Apache-2.0
#include "target/policy.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "target/executor.h"
#include "target/library_symbols.h"

namespace tc::target {

// A mutex, because the tuner's thread resolves while the node's may export.
struct Policy::State {
  const ForeignSymbols foreign;  // null: code runs in this process
  mutable std::shared_mutex mutex;
  Exports exports;          // the application's
  Exports library_exports;  // of libraries that were sent
  // How many there are of both, and of the latter: most nodes have none, and then no lookup takes the lock.
  std::atomic<size_t> known{0}, known_of_libraries{0};
  struct ExportRule {
    std::string symbol;  // a '*' at its end: any that begins so
    std::string from;    // empty: from anywhere
    bool matches(std::string_view name, std::string_view host) const {
      if (!from.empty() && from != host) return false;
      if (symbol.ends_with('*')) return name.starts_with(std::string_view(symbol).substr(0, symbol.size() - 1));
      return symbol == name;
    }
  };
  std::vector<ExportRule> export_rules;
  std::set<std::string, std::less<>> allowed;
  std::map<std::string, void*, std::less<>> open;  // dlopen name -> handle
  std::set<std::string, std::less<>> of_process;

  void count() noexcept {
    known_of_libraries.store(library_exports.size(), std::memory_order_release);
    known.store(exports.size() + library_exports.size(), std::memory_order_release);
  }
  bool allows(const std::string& name) const {
    // A name with a slash is a file anywhere on the disk: "*" means "any installed library", not that.
    return allowed.contains(name) || (allowed.contains("*") && name.find('/') == std::string::npos);
  }
  // What every process with ifuncs has, and this one `here`.
  Result<void*> find_own(const std::string& symbol, void* here) const {
    return foreign ? foreign({}, symbol) : Result<void*>(here);
  }
  // Null: none of them has it.
  Result<void*> find_in_libraries(const std::vector<void*>& libraries, const std::string& symbol) const;
  void* find_in_process(const std::string& symbol) const {
    if (foreign) return nullptr;
    const std::shared_lock lock(mutex);
    if (!of_process.contains(symbol) && !of_process.contains("*")) return nullptr;
    return dlsym(RTLD_DEFAULT, symbol.c_str());
  }
  Status check_library(const std::string& name) const;
  Result<void*> open_library(const std::string& name);
};

Policy::Policy() : Policy(nullptr) {}

Policy::Policy(ForeignSymbols foreign) : state_(std::make_unique<State>(std::move(foreign))) {}

bool Policy::is_foreign() const noexcept { return state_->foreign != nullptr; }

Policy::~Policy() {
  if (is_foreign()) return;
  for (const auto& [name, handle] : state_->open) dlclose(handle);
}

void Policy::export_symbol(std::string symbol, void* address) {
  const std::unique_lock lock(state_->mutex);
  state_->exports.insert_or_assign(std::move(symbol), address);
  state_->count();
}

void Policy::allow_library(std::string name) {
  const std::unique_lock lock(state_->mutex);
  state_->allowed.insert(std::move(name));
}

Status Policy::allow_export(std::string_view rule) {
  const auto at = rule.find('@');
  State::ExportRule parsed{std::string(rule.substr(0, at)),
                           std::string(at == std::string_view::npos ? "" : rule.substr(at + 1))};
  if (parsed.symbol.empty() || parsed.symbol.find('*') < parsed.symbol.size() - 1 ||
      (at != std::string_view::npos && parsed.from.empty()))
    return fail(TC_ERR_INVALID, "'{}' is no rule for exports: it is SYMBOL or PREFIX*, and may end in @HOST", rule);
  const std::unique_lock lock(state_->mutex);
  state_->export_rules.push_back(std::move(parsed));
  return {};
}

Status Policy::may_export(const std::string& symbol, std::string_view from) const {
  const std::shared_lock lock(state_->mutex);
  if (std::ranges::any_of(state_->export_rules, [&](const auto& rule) { return rule.matches(symbol, from); }))
    return {};
  if (from.empty())  // from this node itself, or by the papers' API, which knows no hosts
    return fail(TC_ERR_DENIED,
                "it exports '{}', which libraries may not do here: the operator can allow it with --allow-export {}, "
                "or for a program of the papers' API with UCP_IFUNC_ALLOW_EXPORT={}",
                symbol, symbol, symbol);
  return fail(TC_ERR_DENIED,
              "it exports '{}', which this node does not let libraries from '{}' do: its operator can allow it with "
              "--allow-export {}, or the application with the setting allow-export",
              symbol, from, symbol);
}

Result<Exports> Policy::replace_exports(const Exports& before, const Exports& now) {
  const std::unique_lock lock(state_->mutex);
  for (const auto& [symbol, address] : now) {
    if (abi_symbol(symbol) != nullptr || compiler_runtime_symbol(symbol) != nullptr)
      return fail(TC_ERR_DENIED, "it exports '{}', which every ifunc has already", symbol);
    if (state_->exports.contains(symbol))
      return fail(TC_ERR_DENIED, "it exports '{}', which the application of this node exports itself", symbol);
    if (state_->library_exports.contains(symbol) && !before.contains(symbol))
      return fail(TC_ERR_DENIED, "it exports '{}', which another library exports already", symbol);
  }
  auto all = state_->library_exports;
  for (const auto& [symbol, address] : before) all.erase(symbol);
  for (const auto& [symbol, address] : now) all.emplace(symbol, address);
  all.swap(state_->library_exports);
  state_->count();
  return all;
}

void Policy::restore_exports(Exports all) noexcept {
  const std::unique_lock lock(state_->mutex);
  state_->library_exports.swap(all);
  state_->count();
}

void Policy::withdraw_exports(const Exports& of_library) noexcept {
  const std::unique_lock lock(state_->mutex);
  for (const auto& [symbol, address] : of_library) state_->library_exports.erase(symbol);
  state_->count();
}

bool Policy::has_library_exports() const noexcept {
  return state_->known_of_libraries.load(std::memory_order_acquire) != 0;
}

bool Policy::is_library_export(const std::string& symbol) const {
  if (!has_library_exports()) return false;
  const std::shared_lock lock(state_->mutex);
  return state_->library_exports.contains(symbol);
}

void Policy::allow_process_symbol(std::string symbol) {
  const std::unique_lock lock(state_->mutex);
  state_->of_process.insert(std::move(symbol));
}

bool Policy::allows_library(const std::string& name) const {
  const std::shared_lock lock(state_->mutex);
  return state_->allows(name);
}

Status Policy::State::check_library(const std::string& name) const {
  if (allows(name)) return {};
  return fail(TC_ERR_DENIED,
              "library '{}' is not allowed on this node: its operator can allow it with --allow-lib {}, or "
              "the application with the setting allow-lib",
              name, name);
}

Status Policy::check_libraries(const std::vector<std::string>& dependencies) const {
  const std::shared_lock lock(state_->mutex);
  for (const auto& name : dependencies) TC_CHECK(state_->check_library(name));
  return {};
}

Result<void*> Policy::State::open_library(const std::string& name) {
  const std::unique_lock lock(mutex);
  TC_CHECK(check_library(name));
  if (const auto found = open.find(name); found != open.end()) return found->second;
  if (foreign) {
    TC_CHECK(foreign(name, {}));
    auto& [opened, handle] = *open.emplace(name, nullptr).first;
    return handle = const_cast<std::string*>(&opened);  // the name itself, which stays where it is
  }
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const words = dlerror();
    return fail(TC_ERR_UNRESOLVED, "library '{}' cannot be opened on this node: {}", name,
                words != nullptr ? words : "no reason given");
  }
  open.emplace(name, handle);
  return handle;
}

Result<std::vector<void*>> Policy::open_libraries(const std::vector<std::string>& dependencies) {
  std::vector<void*> handles;
  handles.reserve(dependencies.size());
  for (const auto& name : dependencies) {
    TC_ASSIGN(void* const handle, state_->open_library(name));
    handles.push_back(handle);
  }
  return handles;
}

Result<void*> Policy::State::find_in_libraries(const std::vector<void*>& libraries, const std::string& symbol) const {
  if (!foreign) return find_symbol(libraries, symbol);
  for (void* const library : libraries) {
    auto found = foreign(*static_cast<const std::string*>(library), symbol);
    if (found || found.error().code != TC_ERR_UNRESOLVED) return found;
  }
  return nullptr;
}

Result<void*> Policy::resolve(const std::string& symbol, const std::vector<void*>& libraries,
                              LibraryExports library_exports) const {
  if (void* const address = abi_symbol(symbol)) return state_->find_own(symbol, address);
  if (state_->known.load(std::memory_order_acquire) != 0) {
    const std::shared_lock lock(state_->mutex);
    if (const auto found = state_->exports.find(symbol); found != state_->exports.end()) return found->second;
    if (library_exports == LibraryExports::with)
      if (const auto found = state_->library_exports.find(symbol); found != state_->library_exports.end()) {
        if (found->second != nullptr) return found->second;
        return fail(
            TC_ERR_UNRESOLVED,
            "symbol '{}' is exported by a library whose sender's code runs in cells alone, and this code runs in "
            "the node's process: send the library with a key that may run any code there",
            symbol);
      }
  }
  TC_ASSIGN(void* const found, state_->find_in_libraries(libraries, symbol));
  if (found != nullptr) return found;
  if (void* const address = compiler_runtime_symbol(symbol)) return state_->find_own(symbol, address);
  if (void* const address = state_->find_in_process(symbol)) return address;
  if (is_foreign())
    return fail(
        TC_ERR_UNRESOLVED,
        "symbol '{}' is not available in the cells of this node: it is no function of <threechains/ifunc.h>, no "
        "library that was sent here exports it, and none of the {} libraries that the ifunc declares defines it "
        "there; declare its library, or send the library first. Functions of the application are not in cells",
        symbol, libraries.size());
  return fail(TC_ERR_UNRESOLVED,
              "symbol '{}' is not available on this node: it is no function of <threechains/ifunc.h>, neither the "
              "application nor a library that was sent here exports it, and none of the {} libraries that the ifunc "
              "declares defines it; declare its library, send the library first, or have the application export it",
              symbol, libraries.size());
}

}  // namespace tc::target
