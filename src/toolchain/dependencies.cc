// SPDX-License-Identifier: Apache-2.0
#include "toolchain/dependencies.h"

#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/file.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

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

}  // namespace tc::toolchain
