// SPDX-License-Identifier: Apache-2.0
#include "toolchain/frontend.h"

#include "base/file.h"
#include "toolchain/process.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

// Debian's name of an architecture, for package names in remedies.
std::string_view package_arch(Arch arch) {
  switch (arch) {
    case Arch::x86_64: return "amd64";
    case Arch::aarch64: return "arm64";
    case Arch::riscv64: return "riscv64";
    default: return "ARCH";
  }
}

// What it takes to find the C library's headers of a target that is not this machine.
struct CrossHeaders {
  std::vector<std::string> flags;
  std::string remedy;  // empty when nothing is missing
};

CrossHeaders cross_headers(const TargetTriple& target, Language language, const FrontEnd& front_end) {
  if (target.runs_on(TargetTriple::host())) return {};
  for (const auto& flag : front_end.flags)
    if (flag.starts_with("--sysroot") || flag.starts_with("-isysroot")) return {};
  const fs::path root = fmt::format("/usr/{}-linux-gnu/include", arch_name(target.arch));
  const auto arch = package_arch(target.arch);
  // Without them the host's own headers must not leak in: they are another architecture's. <stddef.h>,
  // <stdint.h> and <threechains/ifunc.h> still work, from clang's own headers.
  if (!fs::exists(root / "stdio.h"))
    return {{"-nostdlibinc"},
            fmt::format("the C library's headers for {} are not on this machine; if that is what is missing, install "
                        "libc6-dev-{}-cross, or give -- --sysroot=DIRECTORY",
                        target.text, arch)};
  CrossHeaders found{{"-isystem", root.string()}, {}};
  if (language == Language::cxx && !fs::exists(root / "c++"))
    found.remedy = fmt::format(
        "the C++ library's headers for {} are not on this machine; if that is what is missing, "
        "install libstdc++-12-dev-{}-cross",
        target.text, arch);
  return found;
}

std::vector<std::string> our_flags(const std::string& triple, Language language, const FrontEnd& front_end) {
  std::vector<std::string> flags = {"--target=" + triple, "-O3", "-flto=thin", "-fPIC", "-c",
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
  if (suffix == ".bc" || suffix == ".ll") return Language::llvm;
  return fail(TC_ERR_INVALID, "{}: no front end takes '{}' files; there are .c, .cc, .cpp, .cxx, .bc and .ll",
              file.string(), suffix);
}

Result<Bytes> compile(const fs::path& source, Language language, const std::string& triple, const FrontEnd& front_end) {
  TC_ASSIGN(const auto target, TargetTriple::parse(triple));
  TC_ASSIGN(const auto clang, language == Language::cxx
                                  ? find_tool("TC_CLANGXX", {"clang++-22", "clang++"}, "install clang-22")
                                  : find_tool("TC_CLANG", {"clang-22", "clang"}, "install clang-22"));
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto output = scratch.path() / "front.bc";
  const auto headers = cross_headers(target, language, front_end);

  std::vector<std::string> command{clang};
  for (const auto& flag : our_flags(triple, language, front_end)) command.push_back(flag);
  for (const auto& flag : headers.flags) command.push_back(flag);
  for (const auto& flag : front_end.flags) command.push_back(flag);
  command.insert(command.end(), {"-o", output.string(), source.string()});

  TC_ASSIGN(const int status, run(command));
  if (status != 0)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (the compiler's words are above){}{}", source.string(),
                triple, headers.remedy.empty() ? "" : "; ", headers.remedy);
  return read_file(output, BundleLimits::slice_bytes);
}

}  // namespace tc::toolchain
