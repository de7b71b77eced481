// SPDX-License-Identifier: Apache-2.0
//
// What injected code may touch on this node: deny by default. An ifunc sees the ifunc ABI, the functions that
// the application exported by name, and the libraries that the operator allowed.
//
// Thread: the node's; resolve() also from the tuner's thread, behind a lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::target {

// What a library that was sent exports: symbols and where they are; null: it runs in cells alone, and nothing of this process
// can use it.
using Exports = std::map<std::string, void*, std::less<>>;

// Where functions lie in another process, which is to run code that is linked here.
//  - No library: the functions of the ifunc ABI and what compilers call by themselves. It is asked for no others.
//  - A library and a symbol: TC_ERR_UNRESOLVED when the library does not define it; what it merely inherits does not count.
//  - A library and no symbol: opens the library. The address does not matter.
// Called from the threads of resolve() and open_libraries(), also by two at once. It must not call the policy.
using ForeignSymbols = std::function<Result<void*>(const std::string& library, const std::string& symbol)>;

class Policy {
 public:
  Policy();
  // For code that another process runs. A CodeStore with such a policy links for that process. No address of this process
  // is ever given, but those of export_symbol() and replace_exports(), which must be addresses there.
  explicit Policy(ForeignSymbols foreign);
  ~Policy();
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  bool is_foreign() const noexcept;

  // Lets ifuncs call `address` by `symbol`. A second export of a name replaces the first for later loads.
  void export_symbol(std::string symbol, void* address);
  // Lets ifuncs that declare it use this library: a dlopen name ("libsqlite3.so.0") or "*" for any.
  void allow_library(std::string name);
  bool allows_library(const std::string& name) const;

  // Lets libraries that are sent here export symbols: "hash64", "hash_*", or "hash_*@HOST" for those that come from that
  // host alone. TC_ERR_INVALID for a rule that could never match.
  Status allow_export(std::string_view rule);
  // May a library from `from` (a host, as peers' addresses have it) export this? TC_ERR_DENIED says by which rule it could.
  Status may_export(const std::string& symbol, std::string_view from) const;
  // The library `name` exports `now` in the place of `before`. All of it, or TC_ERR_DENIED and nothing: when the application
  // or another library exports such a symbol, or every ifunc has it already.
  // Returns what all libraries exported until then, for restore_exports().
  Result<Exports> replace_exports(const Exports& before, const Exports& now);
  void restore_exports(Exports all) noexcept;
  // A library that is freed exports nothing any more.
  void withdraw_exports(const Exports& of_library) noexcept;
  // Does a library that was sent here export it? Does any export anything?
  bool is_library_export(const std::string& symbol) const;
  bool has_library_exports() const noexcept;

  // Lets ifuncs use this symbol of the process, as dlsym finds it; "*" for any. For the papers' API, whose targets do
  // so; a node never does. Without effect for another process.
  void allow_process_symbol(std::string symbol);

  // May an ifunc use all these libraries? TC_ERR_DENIED names the first that it may not, and how to allow it.
  Status check_libraries(const std::vector<std::string>& dependencies) const;
  // Opens what an ifunc declares. TC_ERR_DENIED names the library and how to allow it; TC_ERR_UNRESOLVED
  // carries dlopen's words. The handles stay open as long as the policy lives. They are for resolve() alone.
  Result<std::vector<void*>> open_libraries(const std::vector<std::string>& dependencies);

  // Of libraries that were sent here.
  enum class LibraryExports : uint8_t { with, without };
  // The address that an ifunc with these shared libraries may use for `symbol`. Looks in this order: the ABI, the
  // application's exports, those of libraries that were sent (unless `without`), the shared libraries, and what compilers
  // call by themselves (memcpy, memset, memmove, memcmp and the compiler's runtime library). A symbol that a shared library
  // merely inherits from one of its own dependencies counts only if that one was declared as well. Where the process has
  // another definition in front of the library's, that one is taken. TC_ERR_UNRESOLVED names the symbol and the remedy.
  Result<void*> resolve(const std::string& symbol, const std::vector<void*>& libraries,
                        LibraryExports library_exports = LibraryExports::with) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tc::target
