// SPDX-License-Identifier: Apache-2.0
//
// What injected code may touch on this node: deny by default. An ifunc sees the ifunc ABI, the functions that
// the application exported by name, and the libraries that the operator allowed.
//
// Thread: the node's; resolve() also from the tuner's thread, behind a lock.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::target {

// What a library that was sent exports: symbols and where they are.
using Exports = std::map<std::string, void*, std::less<>>;

class Policy {
 public:
  Policy();
  ~Policy();
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // Lets ifuncs call `address` by `symbol`. A second export of a name replaces the first for later loads.
  void export_symbol(std::string symbol, void* address);
  // Lets ifuncs that declare it use this library: a dlopen name ("libsqlite3.so.0") or "*" for any.
  void allow_library(std::string name);

  // Lets libraries that are sent here export symbols: "hash64", "hash_*", or "hash_*@HOST" for those that come from that
  // host alone. TC_ERR_INVALID for a rule that could never match.
  Status allow_export(std::string_view rule);
  // May a library from `from` (a host, as peers' addresses have it) export this? TC_ERR_DENIED says by which rule it could.
  Status may_export(const std::string& symbol, std::string_view from) const;
  // The library `name` exports `now` in the place of `before`. All of it, or TC_ERR_DENIED and nothing: when the application
  // or another library exports such a symbol, or every ifunc has it already.
  Status replace_exports(const Exports& before, const Exports& now);
  // Does a library that was sent here export it? Does any export anything?
  bool is_library_export(const std::string& symbol) const;
  bool has_library_exports() const noexcept;

  // Lets ifuncs use this symbol of the process, as dlsym finds it; "*" for any. For the papers' API, whose targets do
  // so; a node never does.
  void allow_process_symbol(std::string symbol);

  // Opens what an ifunc declares. TC_ERR_DENIED names the library and how to allow it; TC_ERR_UNRESOLVED
  // carries dlopen's words. The handles stay open as long as the policy lives.
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
