// SPDX-License-Identifier: Apache-2.0
#include "toolchain/frontend.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/file.h"
#include "toolchain/codegen.h"
#include "toolchain/tools.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

const std::vector<CrossTarget>& cross_targets() {
  static const std::vector<CrossTarget> all = {
      {"x86_64-linux-gnu", "x86_64-linux-gnu", "amd64"},
      {"aarch64-linux-gnu", "aarch64-linux-gnu", "arm64"},
      {"riscv64-linux-gnu", "riscv64-linux-gnu", "riscv64"},
      {"powerpc64le-linux-gnu", "powerpc64le-linux-gnu", "ppc64el"},
      {"loongarch64-linux-gnu", "loongarch64-linux-gnu", "loong64"},
      {"mips64el-linux-gnuabi64", "mips64el-linux-gnuabi64", "mips64el"},
      {"x86_64-linux-musl", "x86_64-linux-musl", nullptr},
      {"aarch64-linux-musl", "aarch64-linux-musl", nullptr},
      {"riscv64-linux-musl", "riscv64-linux-musl", nullptr},
      {"powerpc64le-linux-musl", "powerpc64le-linux-musl", nullptr},
      {"loongarch64-linux-musl", "loongarch64-linux-musl", nullptr},
  };
  return all;
}

const char* meant_target(std::string_view word) noexcept {
  const auto machine = word.substr(0, word.find('-'));
  for (const auto& one : cross_targets()) {
    const std::string_view triple = one.triple;
    if (machine == triple.substr(0, triple.find('-'))) return one.triple;
    if (one.debian != nullptr && (machine == one.debian || word == one.debian)) return one.triple;
  }
  return nullptr;
}

CrossHeaders find_cross_headers(const TargetTriple& target) {
  CrossHeaders found;
  found.host = target.runs_on(TargetTriple::host());
  const std::string otherwise = "`zig cc` (pip install ziglang), or give -- --sysroot=DIRECTORY";
  if (found.host) {
    const fs::path root = "/usr/include";
    if (fs::exists(root / "stdio.h")) found.c = root;
    found.cxx = !found.c.empty() && fs::exists(root / "c++");
    found.c_remedy = "libc6-dev, or " + otherwise;
    found.cxx_remedy = "libstdc++-12-dev, or " + otherwise;
    return found;
  }
  const CrossTarget* known = nullptr;
  for (const auto& one : cross_targets())
    if (TargetTriple::parse(one.triple)->runs_on(target) && known == nullptr) known = &one;
  const fs::path root = known != nullptr ? fs::path("/usr") / known->folder / "include" : fs::path();
  if (known != nullptr && fs::exists(root / "stdio.h")) {
    found.c = root;
    found.cxx = fs::exists(root / "c++");
  }
  const bool packaged = known != nullptr && known->debian != nullptr;
  found.c_remedy = packaged ? fmt::format("libc6-dev-{}-cross, or {}", known->debian, otherwise) : otherwise;
  found.cxx_remedy = packaged ? fmt::format("libstdc++-12-dev-{}-cross, or {}", known->debian, otherwise) : otherwise;
  return found;
}

std::vector<std::string> find_zig() {
  if (const char* const chosen = std::getenv("TC_ZIG"); chosen != nullptr && *chosen == '\0') return {};
  if (auto zig = find_tool("TC_ZIG", {"zig"}, "install zig")) return {*zig};
  const auto python = find_tool("TC_PYTHON", {"python3"}, "install python3");
  if (!python) return {};
  // Not by importing it: that would complain on standard error when it is not there.
  const auto there =
      run({*python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('ziglang') is None)"});
  if (!there || *there != 0) return {};
  return {*python, "-m", "ziglang"};
}

std::string zig_triple(const TargetTriple& target) {
  const auto environment = target.text.substr(target.text.rfind('-') + 1);
  const auto arch = target.text.substr(0, target.text.find('-'));
  return fmt::format("{}-linux-{}", arch == "ppc64le" ? "powerpc64le" : arch,
                     target.libc == Libc::unspecified ? "gnu" : environment);
}

std::string list_targets() {
  const bool zig = !find_zig().empty();
  std::string out = fmt::format("{:<26}{:<20}{}\n", "target", "slices", "headers of the C library (and of C++)");
  for (const auto& one : cross_targets()) {
    if (!check_triple(one.triple)) continue;  // an LLVM without this code generator
    const auto target = *TargetTriple::parse(one.triple);
    const auto headers = find_cross_headers(target);
    std::string words;
    if (headers.host && headers.complete(true)) {
      words = "this machine's own";
    } else if (!headers.c.empty()) {
      words = headers.c.string() + (headers.cxx ? " (C++ too)" : fmt::format(" (C++: {})", headers.cxx_remedy));
    } else {
      words = zig ? "from zig cc" : fmt::format("none: {}", headers.c_remedy);
    }
    out += fmt::format("{:<26}{:<20}{}\n", one.triple, baseline_for(target) ? "bitcode, object" : "bitcode", words);
  }
  out +=
      "\nOther 64-bit little-endian Linux triples of LLVM's work as well, without headers: <threechains/ifunc.h>,\n"
      "<stddef.h> and <stdint.h> need none. Objects are for what the loader knows: x86_64, aarch64, riscv64.\n"
      "Refused: big-endian machines (s390x, powerpc64), for payloads are little-endian; and 32-bit ones.\n";
  return out;
}

namespace {

// What a compiler has written.
Result<Compiled> compiled(const fs::path& output) {
  TC_ASSIGN(auto bitcode, read_file(output, BundleLimits::slice_bytes));
  return Compiled{std::move(bitcode), {}};
}

// ---- C and C++ -------------------------------------------------------------------------------------------------------

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

Result<Compiled> compile_c(const fs::path& source, Language language, const std::string& triple,
                           const FrontEnd& front_end, Diagnostics& diagnostics) {
  TC_ASSIGN(const auto target, TargetTriple::parse(triple));
  TC_ASSIGN(auto compiler, compiler_for(target, language, front_end));
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto output = scratch.path() / "front.bc";

  auto& command = compiler.command;
  for (const auto& flag : our_flags(language, front_end)) command.push_back(flag);
  if (shows_colours()) command.emplace_back("-fcolor-diagnostics");
  for (const auto& flag : front_end.flags) command.push_back(flag);
  command.insert(command.end(), {"-o", output.string(), source.string()});

  TC_ASSIGN(const int status, diagnostics.run(command));
  if (status != 0)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (the compiler's words are above){}{}", source.string(),
                triple, compiler.remedy.empty() ? "" : "; ", compiler.remedy);
  return compiled(output);
}

// ---- Rust ------------------------------------------------------------------------------------------------------------
// rustc, without Cargo. The crate threechains-ifunc is compiled first; all that it has is inlined into the source's own
// bitcode.

// rustc's name of a target, which is an exact string.
std::string rust_target(const TargetTriple& target) {
  const auto arch = target.arch == Arch::riscv64 ? std::string("riscv64gc") : std::string(arch_name(target.arch));
  return arch + "-unknown-linux-gnu";
}

// In the source tree, or where it is installed: beside the headers of share/threechains, or below the prefix of a wheel.
Result<fs::path> find_crate(const FrontEnd& front_end) {
  const auto root = front_end.include_directory.parent_path();
  for (const char* place : {"bindings/rust", "rust", "share/threechains/rust"}) {
    const auto file = root / place / "threechains-ifunc/src/lib.rs";
    if (fs::exists(file)) return file;
  }
  return fail(
      TC_ERR_NOT_FOUND,
      "the crate threechains-ifunc is neither in {0}/bindings/rust, {0}/rust nor {0}/share/threechains/rust; install "
      "Three-Chains completely",
      root.string());
}

// Unoptimised, as far as LLVM goes: the importer optimises, and knows where to stop.
std::vector<std::string> command_for(const std::string& rustc, const std::string& target) {
  return {rustc,
          "--edition=2021",
          "--target=" + target,
          "-C",
          "panic=abort",
          "-C",
          "opt-level=3",
          "-C",
          "codegen-units=1",
          "-C",
          "debuginfo=1",
          "-C",
          "no-prepopulate-passes",
          "-C",
          "relocation-model=pic"};
}

Result<Compiled> compile_rust(const fs::path& source, const std::string& triple, const FrontEnd& front_end,
                              Diagnostics& diagnostics) {
  TC_ASSIGN(const auto target, TargetTriple::parse(triple));
  TC_ASSIGN(const auto rustc, find_tool("TC_RUSTC", {"rustc"}, "install rustc (Debian's package, or from rustup.rs)"));
  TC_ASSIGN(const auto crate, find_crate(front_end));
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto name = rust_target(target);
  const auto library = scratch.path() / "libthreechains_ifunc.rlib";
  const auto output = scratch.path() / "front.bc";
  const auto failed = [&](const fs::path& file) {
    return fail(
        TC_ERR_COMPILE,
        "{}: does not compile for {} (the compiler's words are above); if `core` is what is missing, give rustc "
        "that target with `rustup target add {}`, or build for fewer with --target",
        file.string(), triple, name);
  };

  auto command = command_for(rustc, name);
  command.insert(command.end(), {"--crate-type=rlib", "--crate-name=threechains_ifunc", "--emit=link", "-o",
                                 library.string(), crate.string()});
  TC_ASSIGN(int status, diagnostics.run(command));
  if (status != 0) return failed(source);

  command = command_for(rustc, name);
  command.insert(command.end(), {"--crate-type=lib", "--crate-name=ifunc_source", "--emit=llvm-bc", "--extern",
                                 "threechains_ifunc=" + library.string()});
  command.insert(command.end(), front_end.flags.begin(), front_end.flags.end());
  command.insert(command.end(), {"-o", output.string(), source.string()});
  if (shows_colours()) command.emplace_back("--color=always");
  TC_ASSIGN(status, diagnostics.run(command));
  if (status != 0) return failed(source);
  return compiled(output);
}

// ---- Python (Numba) and Julia ----------------------------------------------------------------------------------------
// Each of their packages writes bitcode when asked, for the triple or, where it cannot, for its own machine:
//
//     python3 -m threechains.build SOURCE --name NAME --target TRIPLE -o OUT.bc      (or what has the same effect)
//     julia -e 'using ThreeChains; ThreeChains.build_main(ARGS)' SOURCE --name NAME --target TRIPLE -o OUT.bc
//
// Python's writes the function's signature as well, into OUT.signature.

// EX_DATAERR of sysexits.h: the source is at fault, and what was said of it is all that there is to say.
constexpr int source_is_at_fault = 65;
// As much as the package takes from a bundle.
constexpr size_t signature_bytes = 1 << 20;

// `-m threechains.build`, but the directory that we are in is no place for Python's modules: ifuncs have names like
// token.py and copy.py.
constexpr const char* run_python_package = R"(
import sys
sys.path[:] = filter(None, sys.path)
try:
    from threechains.build import main
except ModuleNotFoundError as error:
    sys.exit(f"{sys.executable}: {error}")
sys.exit(main())
)";

Result<Compiled> ask(std::vector<std::string> command, const fs::path& source, const std::string& triple,
                     const FrontEnd& front_end, std::string_view remedy) {
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto output = scratch.path() / "front.bc";
  command.insert(command.end(), {source.string(), "--name", front_end.name, "--target", triple, "-o", output.string()});
  command.insert(command.end(), front_end.flags.begin(), front_end.flags.end());
  TC_ASSIGN(const int status, run(command));
  if (status == source_is_at_fault)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (what is wrong stands above)", source.string(), triple);
  if (status != 0)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (the compiler's words are above); {}", source.string(),
                triple, remedy);
  TC_ASSIGN(auto made, compiled(output));
  if (const auto signature = fs::path(output).replace_extension(".signature"); fs::exists(signature)) {
    TC_ASSIGN(made.signature, read_file(signature, signature_bytes));
  }
  return made;
}

Result<Compiled> compile_python(const fs::path& source, const std::string& triple, const FrontEnd& front_end) {
  TC_ASSIGN(const auto python,
            find_tool("TC_PYTHON", {"python3"}, "install python3, and our package in it (pip install '.[numba]')"));
  return ask({python, "-c", run_python_package}, source, triple, front_end,
             fmt::format("{} must have our package with Numba: run \"{} -m pip install '.[numba]'\" at the root of "
                         "Three-Chains' sources, or set TC_PYTHON to a Python that has them",
                         python, python));
}

Result<Compiled> compile_julia(const fs::path& source, const std::string& triple, const FrontEnd& front_end) {
  TC_ASSIGN(const auto julia,
            find_tool("TC_JULIA", {"julia"}, "install Julia (scripts/julia fetches one, and is one for TC_JULIA)"));
  return ask({julia, "-e", "using ThreeChains; ThreeChains.build_main(ARGS)"}, source, triple, front_end,
             "it takes the package ThreeChains.jl (bindings/julia); put it on JULIA_LOAD_PATH");
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

Result<Compiled> compile(const fs::path& source, Language language, const std::string& triple,
                         const FrontEnd& front_end, Diagnostics& diagnostics) {
  if (language == Language::rust) return compile_rust(source, triple, front_end, diagnostics);
  if (language == Language::python) return compile_python(source, triple, front_end);
  if (language == Language::julia) return compile_julia(source, triple, front_end);
  return compile_c(source, language, triple, front_end, diagnostics);
}

}  // namespace tc::toolchain
