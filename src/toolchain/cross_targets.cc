// SPDX-License-Identifier: Apache-2.0
#include "toolchain/cross_targets.h"

#include <cstdlib>

#include "toolchain/codegen.h"
#include "toolchain/process.h"

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

}  // namespace tc::toolchain
