// SPDX-License-Identifier: Apache-2.0
#include "toolchain/frontend.h"

#include <algorithm>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "toolchain/cross_targets.h"
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

Result<std::string> find_clang(Language language) {
  return language == Language::cxx ? find_tool("TC_CLANGXX", {"clang++-22", "clang++"}, "install clang-22")
                                   : find_tool("TC_CLANG", {"clang-22", "clang"}, "install clang-22");
}

Result<Compiler> compiler_for(const TargetTriple& target, Language language, const FrontEnd& front_end) {
  TC_ASSIGN(const auto clang, find_clang(language));
  Compiler compiler{{clang, "--target=" + target.text}, {}};
  if (language == Language::llvm || brings_its_own_headers(front_end)) return compiler;
  const auto headers = find_cross_headers(target);
  if (headers.host) return compiler;
  const bool is_cxx = language == Language::cxx;
  if (headers.c.empty() || (is_cxx && !headers.cxx)) {
    if (auto zig = find_zig(); !zig.empty()) {
      zig.insert(zig.end(), {is_cxx ? "c++" : "cc", "-target", zig_triple(target), "-emit-llvm",
                             "-fno-sanitize=undefined"});  // which is its default
      return Compiler{std::move(zig), {}};
    }
  }
  // Without them the host's own headers must not leak in: they are another architecture's. <stddef.h>,
  // <stdint.h> and <threechains/ifunc.h> still work, from clang's own headers.
  if (headers.c.empty()) {
    compiler.command.push_back("-nostdlibinc");
    compiler.remedy = fmt::format(
        "the C library's headers for {} are not on this machine; if that is what is missing, "
        "install {}",
        target.text, headers.c_remedy);
    return compiler;
  }
  compiler.command.insert(compiler.command.end(), {"-isystem", headers.c.string()});
  if (is_cxx && !headers.cxx)
    compiler.remedy = fmt::format(
        "the C++ library's headers for {} are not on this machine; if that is what is "
        "missing, install {}",
        target.text, headers.cxx_remedy);
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
