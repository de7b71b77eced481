// SPDX-License-Identifier: Apache-2.0
#include "toolchain/resolve.h"

#include <dlfcn.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

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

// What has a function run when a process or a thread ends.
bool runs_at_the_end(std::string_view symbol) {
  constexpr std::array<std::string_view, 7> all = {"atexit",
                                                   "at_quick_exit",
                                                   "on_exit",
                                                   "__cxa_atexit",
                                                   "__cxa_at_quick_exit",
                                                   "__cxa_thread_atexit",
                                                   "__cxa_thread_atexit_impl"};
  return contains(all, symbol);
}

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

constexpr size_t largest_library = 1u << 30;

std::vector<fs::path> library_directories() {
  std::vector<fs::path> directories;
  if (const char* const path = std::getenv("LIBRARY_PATH")) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) directories.emplace_back(part);
  }
  for (const char* const root : {"/usr/local/lib", "/lib", "/usr/lib"}) {
    for (const char* const arch : {"x86_64", "aarch64", "riscv64"})
      directories.push_back(fs::path(root) / fmt::format("{}-linux-gnu", arch));
    directories.push_back(fs::path(root) / ".." / "lib64");
    directories.emplace_back(root);
  }
  for (const char* const arch : {"aarch64", "riscv64", "x86_64"})  // cross libraries: better than none
    directories.push_back(fmt::format("/usr/{}-linux-gnu/lib", arch));
  return directories;
}

struct SharedObject {
  std::string soname;
  std::set<std::string> symbols;
};

std::optional<SharedObject> read_shared_object(const fs::path& path) {
  auto bytes = read_file(path, largest_library);
  if (!bytes) return std::nullopt;
  const llvm::StringRef text(as_text(*bytes));
  if (!text.starts_with("\177ELF")) return std::nullopt;
  auto file = llvm::object::ELF64LEObjectFile::create(llvm::MemoryBufferRef(text, "library"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return std::nullopt;
  }
  SharedObject object;
  for (const auto& symbol : file->getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    auto flags = symbol.getFlags();
    if (name && flags && !(*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty())
      object.symbols.insert(name->split('@').first.str());
    if (!name) llvm::consumeError(name.takeError());
    if (!flags) llvm::consumeError(flags.takeError());
  }
  const auto& elf = file->getELFFile();
  auto entries = elf.dynamicEntries();
  if (!entries) {
    llvm::consumeError(entries.takeError());
    return object;
  }
  uint64_t soname = 0, names = 0;
  for (const auto& entry : *entries) {
    if (entry.d_tag == llvm::ELF::DT_SONAME) soname = entry.d_un.d_val;
    if (entry.d_tag == llvm::ELF::DT_STRTAB) names = entry.d_un.d_ptr;
  }
  if (auto at = elf.toMappedAddr(names); at && soname) {
    const auto offset = static_cast<size_t>(reinterpret_cast<const char*>(*at) - text.data()) + soname;
    if (offset < text.size()) object.soname = text.substr(offset).take_until([](char c) { return c == '\0'; }).str();
  } else if (!at) {
    llvm::consumeError(at.takeError());
  }
  return object;
}

// A file of the linker's own language stands where a library is expected (libm.so, libc.so): the first library that
// it names.
std::optional<fs::path> named_by_script(const fs::path& file) {
  auto bytes = read_file(file, 64 * 1024);
  if (!bytes) return std::nullopt;
  std::istringstream words{std::string(as_text(*bytes))};
  for (std::string word; words >> word;)
    if (word.find(".so") != std::string::npos && word.front() == '/') return word;
  return std::nullopt;
}

// libNAME.so itself, else its versions: the shortest name first, which is the soname's link.
std::vector<fs::path> candidates(const fs::path& directory, const std::string& file) {
  std::vector<fs::path> found;
  std::error_code error;
  if (fs::exists(directory / file, error)) found.push_back(directory / file);
  if (!file.ends_with(".so")) return found;
  std::vector<std::string> versions;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (const auto name = entry.path().filename().string(); name.starts_with(file + ".")) versions.push_back(name);
  std::sort(versions.begin(), versions.end(),
            [](const auto& a, const auto& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  for (const auto& version : versions) found.push_back(directory / version);
  return found;
}

std::optional<SharedObject> look_for(const std::string& file) {
  for (const auto& directory : library_directories())
    for (const auto& candidate : candidates(directory, file)) {
      auto object = read_shared_object(candidate);
      if (!object)
        if (const auto named = named_by_script(candidate)) object = read_shared_object(*named);
      if (!object) continue;
      if (object->soname.empty()) object->soname = candidate.filename().string();
      return object;
    }
  return std::nullopt;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Result<DependencyFile> read_dependency_file(const fs::path& file) {
  constexpr std::string_view at_source = "source:";
  DependencyFile names;
  std::error_code error;
  if (!fs::exists(file, error)) return names;
  TC_ASSIGN(const auto bytes, read_file(file, 64 * 1024));
  std::istringstream lines{std::string(as_text(bytes))};
  for (std::string line; std::getline(lines, line);) {
    auto name = trimmed(line.substr(0, line.find('#')));
    if (name.empty()) continue;
    if (name.starts_with(at_source))
      names.source_libraries.push_back(trimmed(name.substr(at_source.size())));
    else
      names.libraries.push_back(std::move(name));
  }
  return names;
}

Result<Library> find_library(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return fail(TC_ERR_INVALID,
                "library '{}' is a path, which means nothing at the target; name it as the linker does "
                "(sqlite3) or as the loader does (libsqlite3.so.0)",
                name);
  if (name.find_first_of(" \t\"'") != std::string::npos)
    return fail(TC_ERR_INVALID, "library '{}' is no name of a library; one name a line, '#' starts a comment", name);
  const bool full = name.find(".so") != std::string::npos;
  const auto file = full ? name : fmt::format("lib{}.so", name);
  Library library{file, false, {}};
  if (auto object = look_for(file)) {
    library.found = true;
    library.soname = std::move(object->soname);
    library.symbols = std::move(object->symbols);
  }
  return library;
}

Status check_resolvable(const std::vector<Undefined>& undefined, SliceRole role, const Resolution& with,
                        const std::string& name) {
  for (const auto& [symbol, where, is_call, is_weak] : undefined) {
    if (resolvable(symbol, role, with)) continue;
    const auto* const verb = is_call ? "called" : "used";
    if (runs_at_the_end(symbol))
      return fail(
          TC_ERR_UNRESOLVED,
          "{}: {} is {}{}, but nothing may run a function of an ifunc when the process ends, for its code may be "
          "gone by then; do that work before {}_main returns, or let the application register a function of its "
          "own",
          where, shown(symbol), verb, symbol.starts_with("__") ? " (for the destructor of a static object)" : "", name);
    if (is_weak && role == SliceRole::target)
      return fail(
          TC_ERR_UNRESOLVED,
          "{}: {} is weak, and neither the ifunc ABI nor a declared library defines it; give --extern {}, and it "
          "is what the target's application exports by that name, or null where that exports none",
          where, shown(symbol), symbol);
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

bool is_ifunc_abi(const std::string& symbol) { return contains(abi_names::functions, symbol); }

bool is_compiler_runtime(const std::string& symbol) { return contains(abi_names::compiler_runtime, symbol); }

}  // namespace tc::toolchain
