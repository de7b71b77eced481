// SPDX-License-Identifier: Apache-2.0
//
// Bitcode of older LLVMs, with typed pointers, is upgraded: Inputs/llvm9.bc is what Julia 1.5 (LLVM 9.0.1) made of
//
//     @ifunc function older(payload::Ptr{UInt64}, size::Csize_t, target::Ptr{UInt64})
//         unsafe_store!(target, unsafe_load(target) + unsafe_load(payload))
//         return nothing
//     end
//
// RUN: %build %S/Inputs/llvm9.bc --name older --target x86_64-linux-gnu --target aarch64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %s --check-prefix=X86
// RUN: %asm-arm --cpu generic %t.ifunc | %FileCheck %s --check-prefix=ARM
//
// X86-LABEL: ifunc_main:
// X86-NEXT: movq (%rdi), %rax
// X86-NEXT: addq %rax, (%rdx)
// X86-NEXT: retq
//
// ARM-LABEL: ifunc_main:
// ARM: ldr
// ARM: ldr
// ARM: add
// ARM: str
// ARM-NEXT: ret
