// SPDX-License-Identifier: Apache-2.0
//
// TC_EMBED(name, "path"): the bytes of a file, carried inside the program, as `ByteView name()`. Threads: any.
#pragma once

#include "base/bytes.h"

#define TC_EMBED(name, path)                                                                                           \
  asm(".section .rodata\n.balign 16\n.globl tc_embedded_" #name "\n.hidden tc_embedded_" #name                         \
      "\n.globl tc_embedded_" #name "_end\n.hidden tc_embedded_" #name "_end\ntc_embedded_" #name ":\n.incbin \"" path \
      "\"\ntc_embedded_" #name "_end:\n.byte 0\n.text\n");                                                             \
  extern "C" const std::byte tc_embedded_##name[];                                                                     \
  extern "C" const std::byte tc_embedded_##name##_end[];                                                               \
  static ::tc::ByteView name() { return {tc_embedded_##name, tc_embedded_##name##_end}; }
