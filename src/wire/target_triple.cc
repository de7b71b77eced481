// SPDX-License-Identifier: Apache-2.0
#include "wire/target_triple.h"

#include <array>

namespace tc {

namespace {

constexpr size_t most_parts = 4;

// Returns the number of parts between separators, at most `most_parts` + 1. It uses no heap, because never-seen code
// names a triple for each slice and waits for it.
size_t split(std::string_view text, char separator, std::array<std::string_view, most_parts>& parts) {
  for (size_t count = 0; count < most_parts; ++count) {
    const auto end = text.find(separator);
    parts[count] = text.substr(0, end);
    if (end == std::string_view::npos) return count + 1;
    text.remove_prefix(end + 1);
  }
  return most_parts + 1;
}

Arch parse_arch(std::string_view name) {
  if (name == "x86_64" || name == "amd64" || name == "x86-64") return Arch::x86_64;
  if (name == "aarch64" || name == "arm64") return Arch::aarch64;
  // Rust writes the extensions into the name: riscv64gc.
  if (name.starts_with("riscv64") && !name.starts_with("riscv64be")) return Arch::riscv64;
  return Arch::other;
}

// "gnu" and "gnu2.31" are the same library; "gnux32" is another ABI.
bool is_version_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  return text.find_first_not_of("0123456789.") == std::string_view::npos;
}

Libc parse_libc(std::string_view environment) {
  if (environment.empty()) return Libc::unspecified;
  if (is_version_of(environment, "gnu")) return Libc::gnu;
  if (is_version_of(environment, "musl")) return Libc::musl;
  return Libc::other;
}

std::string_view arch_part(std::string_view triple) { return triple.substr(0, triple.find('-')); }
std::string_view environment_part(std::string_view triple) { return triple.substr(triple.rfind('-') + 1); }

}  // namespace

Result<TargetTriple> TargetTriple::parse(std::string_view text) {
  std::array<std::string_view, most_parts> parts;
  const auto count = split(text, '-', parts);
  if (count < 2 || count > most_parts || parts[0].empty() || text.size() > 64)
    return fail(TC_ERR_INVALID, "'{}' is not a target triple like x86_64-linux-gnu", text.substr(0, 80));
  TargetTriple triple;
  triple.text = text;
  triple.arch = parse_arch(parts[0]);
  triple.system = System::other;
  for (size_t i = 1; i < count; ++i) {
    if (!is_version_of(parts[i], "linux")) continue;
    triple.system = System::linux_elf;
    if (i + 1 < count) triple.libc = parse_libc(parts[i + 1]);
    break;
  }
  return triple;
}

TargetTriple TargetTriple::host() {
#if defined(__x86_64__)
  constexpr std::string_view arch = "x86_64";
#elif defined(__aarch64__)
  constexpr std::string_view arch = "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
  constexpr std::string_view arch = "riscv64";
#else
#error "Three-Chains needs a 64-bit little-endian architecture that this file knows"
#endif
  return *parse(fmt::format("{}-unknown-linux-gnu", arch));
}

bool TargetTriple::runs_on(const TargetTriple& node) const noexcept {
  if (arch != node.arch || system != node.system || system != System::linux_elf) return false;
  if (arch == Arch::other && arch_part(text) != arch_part(node.text)) return false;
  if (libc == Libc::other && node.libc == Libc::other) return environment_part(text) == environment_part(node.text);
  return libc == node.libc || libc == Libc::unspecified || node.libc == Libc::unspecified;
}

std::string_view arch_name(Arch arch) noexcept {
  switch (arch) {
    case Arch::x86_64: return "x86_64";
    case Arch::aarch64: return "aarch64";
    case Arch::riscv64: return "riscv64";
    case Arch::none: return "none";
    case Arch::other: break;
  }
  return "other";
}

}  // namespace tc
