// SPDX-License-Identifier: Apache-2.0
#include "toolchain/resolve.h"

#include <dlfcn.h>
#include <llvm/Demangle/Demangle.h>

#include <algorithm>
#include <string_view>

#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

bool contains(const auto& names, std::string_view symbol) {
  return std::ranges::find(names, symbol) != std::end(names);
}

bool one_edit_apart(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin());
  const auto rest = std::string_view(left, a.end());
  if (a.size() == b.size()) return rest.empty() || rest.substr(1) == std::string_view(right + 1, b.end());
  return rest == std::string_view(right + 1, b.end());
}

// What the author probably meant.
std::string suggestion(const std::string& symbol, const Resolution& with) {
  for (const auto known : abi_names::functions)
    if (one_edit_apart(symbol, known)) return fmt::format(" (did you mean '{}'?)", known);
  for (const auto& library : with.libraries)
    for (const auto& known : library.symbols)
      if (one_edit_apart(symbol, known)) return fmt::format(" (did you mean '{}' of {}?)", known, library.soname);
  return {};
}

bool resolvable(const std::string& symbol, SliceRole role, const Resolution& with) {
  if (role == SliceRole::target && is_ifunc_abi(symbol)) return true;
  if (is_compiler_runtime(symbol)) return true;
  for (const auto& allowed : with.externs)
    if (allowed == "*" || allowed == symbol) return true;
  const auto defines = [&](const auto& library) { return !library.found || library.symbols.contains(symbol); };
  return std::any_of(with.libraries.begin(), with.libraries.end(), defines) ||
         (role == SliceRole::source &&
          std::any_of(with.source_libraries.begin(), with.source_libraries.end(), defines));
}

}  // namespace

bool is_ifunc_abi(const std::string& symbol) { return contains(abi_names::functions, symbol); }

bool is_compiler_runtime(const std::string& symbol) { return contains(abi_names::compiler_runtime, symbol); }

namespace {

bool is_of_exceptions(std::string_view symbol) {
  return symbol.starts_with("__cxa_") || symbol.starts_with("_Unwind_") || symbol.starts_with("_ZTI") ||
         symbol.starts_with("_ZTVN10__cxxabi") || symbol == "__gxx_personality_v0" || symbol == "_ZSt9terminatev";
}

// What a language's own runtime would have to do at the target, which has none. Empty for other symbols.
std::string_view remedy_for_runtime_of_a_language(std::string_view symbol) {
  if (symbol.starts_with("NRT_"))
    return "the code allocates (an array made by an expression, a list, a dictionary, a string), and a target has no "
           "Python runtime; loop over the elements, and write results into an array that was passed in";
  if (symbol.starts_with("Py") || symbol.starts_with("_Py") || symbol.starts_with("numba_"))
    return "the code needs the Python interpreter (print, Python objects, string formatting), which a target does not "
           "have; work on numbers and arrays, and reply with what is to be shown";
  if (symbol.starts_with("jl_") || symbol.starts_with("ijl_") || symbol.starts_with("julia."))
    return "the code needs the Julia runtime (allocation, a type-unstable call, print), which a target does not have; "
           "work on pointers and concrete types";
  if (symbol.starts_with("__rust_"))  // __rust_alloc and its like, before Rust 1.87
    return "Rust's allocator does not travel; work on slices of the payload, of the target's data, and of the stack";
  const auto readable = llvm::demangle(symbol);
  for (const std::string_view root : {"core::", "alloc::", "std::", "__rustc::", "<core::", "<alloc::", "<std::"})
    if ((symbol.starts_with("_R") ||
         (symbol.starts_with("_ZN") && symbol.ends_with("E") && symbol.find("17h") != symbol.npos)) &&
        readable.starts_with(root))
      return "Rust's own libraries do not travel: only what is generic or inline there does; write the loop yourself, "
             "and do without formatting and allocation";
  return {};
}

// The library of the system that this symbol of C or C++ is in, as one declares it; empty: it is in none, or that is not known.
std::string_view library_of(const std::string& symbol) {
  if (symbol.starts_with("_Z")) return "stdc++";
  for (const auto& [name, file] : {std::pair{"c", "libc.so.6"}, std::pair{"m", "libm.so.6"}}) {
    void* const library = ::dlopen(file, RTLD_LAZY | RTLD_NOLOAD);  // this program has both
    if (library == nullptr) continue;
    const bool is_there = ::dlsym(library, symbol.c_str()) != nullptr;
    ::dlclose(library);
    if (is_there) return name;
  }
  return {};
}

// As its author writes it, and as a linker does when that is something else.
std::string shown(const std::string& symbol) {
  const auto readable = llvm::demangle(symbol);
  return readable == symbol ? fmt::format("'{}'", symbol) : fmt::format("'{}' ({})", readable, symbol);
}

}  // namespace

Status check_resolvable(const std::vector<Undefined>& undefined, SliceRole role, const Resolution& with,
                        const std::string& name) {
  for (const auto& [symbol, where, is_call] : undefined) {
    if (resolvable(symbol, role, with)) continue;
    const auto* const verb = is_call ? "called" : "used";
    if (role == SliceRole::source && is_ifunc_abi(symbol))
      return fail(TC_ERR_UNRESOLVED,
                  "{}: {} is {} at the source (by {}_payload_init or its like), but it is for code "
                  "that runs at the target",
                  where, shown(symbol), verb, name);
    if (role == SliceRole::source)
      return fail(TC_ERR_UNRESOLVED,
                  "{}: {} is {} at the source, but no declared library defines it{}; write its "
                  "library into {}.deps as \"source: NAME\", or give --extern {} if the program that sends has it",
                  where, shown(symbol), verb, suggestion(symbol, with), name, symbol);
    if (is_of_exceptions(symbol))
      return fail(TC_ERR_UNRESOLVED,
                  "{}: C++ exceptions and type information need {} of the C++ library; do without "
                  "(no -fexceptions), or declare stdc++ and gcc_s in {}.deps",
                  where, shown(symbol), name);
    if (const auto remedy = remedy_for_runtime_of_a_language(symbol); !remedy.empty())
      return fail(TC_ERR_UNRESOLVED, "{}: {} is {} but a target does not have it; {}", where, shown(symbol), verb,
                  remedy);
    const auto library = library_of(symbol);
    return fail(TC_ERR_UNRESOLVED,
                "{}: {} is {} but neither the ifunc ABI nor a declared library defines it{}; declare "
                "its library{} in {}.deps or with #pragma comment(lib, \"{}\"), or give --extern {} if the target's "
                "application exports it",
                where, shown(symbol), verb, suggestion(symbol, with),
                library.empty() ? "" : fmt::format(" {}", library), name, library.empty() ? "..." : library, symbol);
  }
  return {};
}

}  // namespace tc::toolchain
