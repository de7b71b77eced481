// SPDX-License-Identifier: Apache-2.0
//
// The target that a slice was built for. Triples are compared by their parts, not as text: `x86_64-pc-linux-gnu` and
// `x86_64-unknown-linux-gnu` are the same target.
//
// Threads: any; plain values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tc {

enum class Arch : uint8_t { none = 0, x86_64 = 1, aarch64 = 2, riscv64 = 3, other = 255 };
enum class System : uint8_t { none = 0, linux_elf = 1, other = 255 };
enum class Libc : uint8_t { unspecified = 0, gnu = 1, musl = 2, other = 255 };

struct TargetTriple {
  Arch arch = Arch::none;
  System system = System::none;
  Libc libc = Libc::unspecified;
  std::string text;  // as it was written, for people and for LLVM

  // Understands arch[-vendor]-os[-environment], with versions behind os and environment ("linux5.10.0-gnu2.31").
  // Accepts every architecture name. Unknown ones become `other`, and match only the same name.
  static Result<TargetTriple> parse(std::string_view text);
  // The triple this process was built for.
  static TargetTriple host();

  // True: code for this triple runs on a node with the triple `node`. Only Linux runs our code. An unspecified C
  // library matches every other.
  bool runs_on(const TargetTriple& node) const noexcept;
};

std::string_view arch_name(Arch arch) noexcept;

}  // namespace tc
