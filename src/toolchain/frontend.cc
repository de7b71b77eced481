// SPDX-License-Identifier: Apache-2.0
#include "toolchain/frontend.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "toolchain/cross_targets.h"
#include "toolchain/llvm_tools.h"
#include "toolchain/process.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

bool brings_its_own_headers(const FrontEnd& front_end) {
  return std::ranges::any_of(front_end.flags, [](const std::string& flag) {
    return flag.starts_with("--sysroot") || flag.starts_with("-isysroot");
  });
}

// Who compiles, with which headers, and what to say when it fails.
struct Compiler {
  std::vector<std::string> command;  // up to our flags
  std::string remedy;                // empty when nothing is missing
};

// What zig compiles with its own headers; nothing when there is no zig.
std::optional<Compiler> zig_for(const TargetTriple& target, bool is_cxx) {
  auto command = find_zig();
  if (command.empty()) return std::nullopt;
  command.insert(command.end(), {is_cxx ? "c++" : "cc", "-target", zig_triple(target), "-emit-llvm",
                                 "-fno-sanitize=undefined"});  // which is its default
  return Compiler{std::move(command), {}};
}

std::string missing_headers(const char* library, const TargetTriple& target, const std::string& remedy) {
  return fmt::format("the {} library's headers for {} are not on this machine; if that is what is missing, install {}",
                     library, target.text, remedy);
}

Result<Compiler> compiler_for(const TargetTriple& target, Language language, const FrontEnd& front_end) {
  const bool is_cxx = language == Language::cxx;
  const bool needs_headers = language != Language::llvm && !brings_its_own_headers(front_end);
  const auto clang = find_clang(is_cxx);
  if (!clang) {
    const bool is_missing = clang.error().code == TC_ERR_NOT_FOUND;  // and none was asked for by name
    if (auto zig = is_missing && needs_headers ? zig_for(target, is_cxx) : std::nullopt) return *zig;
    return fail(clang.error());
  }
  Compiler compiler{clang->command, {}};
  compiler.command.push_back("--target=" + target.text);
  if (!needs_headers) return compiler;
  const auto headers = find_cross_headers(target);
  if (headers.host && (!clang->built_in || headers.complete(is_cxx))) return compiler;
  if (!headers.complete(is_cxx))
    if (auto zig = zig_for(target, is_cxx)) return *zig;
  // Without them the host's own headers must not leak in: they are another architecture's. <stddef.h>,
  // <stdint.h> and <threechains/ifunc.h> still work, from clang's own headers.
  if (headers.c.empty()) {
    compiler.command.push_back("-nostdlibinc");
    compiler.remedy = missing_headers("C", target, headers.c_remedy);
    return compiler;
  }
  if (!headers.host) compiler.command.insert(compiler.command.end(), {"-isystem", headers.c.string()});
  if (is_cxx && !headers.cxx) compiler.remedy = missing_headers("C++", target, headers.cxx_remedy);
  return compiler;
}

std::vector<std::string> our_flags(Language language, const FrontEnd& front_end) {
  std::vector<std::string> flags = {"-O3", "-flto=thin", "-fPIC", "-c",
                                    // Positions are for the importer's messages; it drops them before it writes.
                                    "-gline-tables-only", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
                                    "-fno-ident", "-I", front_end.include_directory.string()};
  // Exceptions need unwind tables and a runtime library at the target: authors who want that ask for it.
  if (language == Language::cxx) flags.insert(flags.end(), {"-std=c++20", "-fno-exceptions", "-fno-unwind-tables"});
  if (language == Language::c) flags.insert(flags.end(), {"-std=gnu17", "-fno-unwind-tables"});
  return flags;
}

}  // namespace

Result<Language> language_of(const fs::path& file) {
  const auto suffix = file.extension().string();
  if (suffix == ".c") return Language::c;
  if (suffix == ".cc" || suffix == ".cpp" || suffix == ".cxx" || suffix == ".C") return Language::cxx;
  if (suffix == ".rs") return Language::rust;
  if (suffix == ".py") return Language::python;
  if (suffix == ".jl") return Language::julia;
  if (suffix == ".bc" || suffix == ".ll") return Language::llvm;
  return fail(TC_ERR_INVALID,
              "{}: no front end takes '{}' files; there are .c, .cc, .cpp, .cxx, .rs, .py, .jl, .bc and .ll",
              file.string(), suffix);
}

Result<Bytes> compile(const fs::path& source, Language language, const std::string& triple, const FrontEnd& front_end) {
  if (language == Language::rust) return compile_rust(source, triple, front_end);
  if (language == Language::python) return compile_python(source, triple, front_end);
  if (language == Language::julia) return compile_julia(source, triple, front_end);
  TC_ASSIGN(const auto target, TargetTriple::parse(triple));
  TC_ASSIGN(auto compiler, compiler_for(target, language, front_end));
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto output = scratch.path() / "front.bc";

  auto& command = compiler.command;
  for (const auto& flag : our_flags(language, front_end)) command.push_back(flag);
  for (const auto& flag : front_end.flags) command.push_back(flag);
  command.insert(command.end(), {"-o", output.string(), source.string()});

  TC_ASSIGN(const int status, run(command));
  if (status != 0)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (the compiler's words are above){}{}", source.string(),
                triple, compiler.remedy.empty() ? "" : "; ", compiler.remedy);
  return read_file(output, BundleLimits::slice_bytes);
}

}  // namespace tc::toolchain
