// SPDX-License-Identifier: Apache-2.0
//
// The front end for Rust: rustc, without Cargo. The crate threechains-ifunc is compiled first; all that it has is
// inlined into the source's own bitcode.
#include "base/file.h"
#include "toolchain/frontend.h"
#include "toolchain/process.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

Result<Bytes> compile_rust(const fs::path& source, const std::string& triple, const FrontEnd& front_end) {
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
  TC_ASSIGN(int status, run(command));
  if (status != 0) return failed(source);

  command = command_for(rustc, name);
  command.insert(command.end(), {"--crate-type=lib", "--crate-name=ifunc_source", "--emit=llvm-bc", "--extern",
                                 "threechains_ifunc=" + library.string()});
  command.insert(command.end(), front_end.flags.begin(), front_end.flags.end());
  command.insert(command.end(), {"-o", output.string(), source.string()});
  TC_ASSIGN(status, run(command));
  if (status != 0) return failed(source);
  return read_file(output, BundleLimits::slice_bytes);
}

}  // namespace tc::toolchain
