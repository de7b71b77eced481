// SPDX-License-Identifier: Apache-2.0
//
// Which undefined symbols a target can define: the rules of the target's policy, applied at build time so that a
// mistake shows where it can be mended. Besides the ifunc ABI those are symbols of the shared libraries that an ifunc
// declares, in foo.deps beside its source or with #pragma comment(lib, ...). The libraries are looked up on this
// machine for the name that dlopen finds (their soname) and for their symbols.
//
// Threads: any.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "toolchain/importer.h"

namespace tc::toolchain {

struct Library {
  std::string soname;             // "libsqlite3.so.0"
  bool found = false;             // on this machine
  std::set<std::string> symbols;  // that it defines, when found
};

// "sqlite3", "m", "libsqlite3.so" or "libsqlite3.so.0" to a library. One that is not on this machine keeps its
// full name, or becomes lib%s.so. TC_ERR_INVALID for a path: it would mean nothing at the target.
Result<Library> find_library(const std::string& name);

struct DependencyFile {
  std::vector<std::string> libraries;         // the target opens them
  std::vector<std::string> source_libraries;  // "source: zstd": for the payload functions only; the sender has them
};

// The lines of a .deps file: one library each, '#' starts a comment. An absent file is no libraries.
Result<DependencyFile> read_dependency_file(const std::filesystem::path& file);

struct Resolution {
  std::vector<Library> libraries;         // declared for the target; the source may use them too
  std::vector<Library> source_libraries;  // for the payload functions only: what the sending process has, libc too
  std::vector<std::string> externs;       // --extern: what the target's application exports; "*" for anything
};

// TC_ERR_UNRESOLVED names the symbol, the place and the remedies. `role` source: the ifunc ABI is not there.
Status check_resolvable(const std::vector<Undefined>& undefined, SliceRole role, const Resolution& with,
                        const std::string& name);

// A function of <threechains/ifunc.h> (wire/abi_names.h).
bool is_ifunc_abi(const std::string& symbol);
// A function that compilers call by themselves.
bool is_compiler_runtime(const std::string& symbol);

}  // namespace tc::toolchain
