// SPDX-License-Identifier: Apache-2.0
//
// The shared libraries that an ifunc declares: from foo.deps beside its source, and from #pragma comment(lib, ...).
// They are looked up on this machine for two things: the name that dlopen finds (their soname), and their symbols,
// so that a misspelt function is refused here and not at the target.
//
// Thread: the program's only one.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::toolchain {

struct Library {
  std::string soname;             // "libsqlite3.so.0"
  bool found = false;             // on this machine
  std::set<std::string> symbols;  // that it defines, when found
};

struct DependencyFile {
  std::vector<std::string> libraries;         // the target opens them
  std::vector<std::string> source_libraries;  // "source: zstd": for the payload functions only; the sender has them
};

// The lines of a .deps file: one library each, '#' starts a comment. An absent file is no libraries.
Result<DependencyFile> read_dependency_file(const std::filesystem::path& file);

// "sqlite3", "m", "libsqlite3.so" or "libsqlite3.so.0" to a library. One that is not on this machine keeps its
// full name, or becomes lib%s.so. TC_ERR_INVALID for a path: it would mean nothing at the target.
Result<Library> find_library(const std::string& name);

}  // namespace tc::toolchain
