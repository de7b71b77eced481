// SPDX-License-Identifier: Apache-2.0
//
// What injected code may touch on this node: deny by default. An ifunc sees the ifunc ABI, the functions that
// the application exported by name, and the libraries that the operator allowed.
//
// Thread: the node's; `resolve` also from the JIT's thread (it only reads).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::target {

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

  // Opens what an ifunc declares. TC_ERR_DENIED names the library and how to allow it; TC_ERR_UNRESOLVED
  // carries dlopen's words. The handles stay open as long as the policy lives.
  Result<std::vector<void*>> open_libraries(const std::vector<std::string>& dependencies);

  // The address an ifunc with these libraries may use for `symbol`: ABI, then exports, then the libraries. A
  // symbol that a library merely inherits from one of its own dependencies counts only if that one was
  // declared as well. Also finds what compilers call without being asked (memcpy, memset, memmove, memcmp and
  // the compiler's runtime library). TC_ERR_UNRESOLVED names the symbol and the remedy.
  Result<void*> resolve(const std::string& symbol, const std::vector<void*>& libraries) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tc::target
