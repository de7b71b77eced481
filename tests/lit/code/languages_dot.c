// SPDX-License-Identifier: Apache-2.0
//
// A sum that may be made in any order becomes the same loop in every language, on each CPU: four fused multiply-adds on
// the widest vectors that it likes, and nothing stored in between.
//
// RUN: %build %languages/dot.c -o %t.ifunc
// RUN: %asm-x86 --cpu haswell %t.ifunc | %FileCheck %s --check-prefix=AVX2
// RUN: %asm-x86 --cpu znver5 %t.ifunc | %FileCheck %s --check-prefix=AVX512
// RUN: %asm-arm --cpu a64fx %t.ifunc | %FileCheck %s --check-prefix=SVE
// RUN: %if rustc %{ %build %languages/dot.rs --target x86_64-linux-gnu -o %t-rust.ifunc %}
// RUN: %if rustc %{ %asm-x86 --cpu haswell %t-rust.ifunc | %FileCheck %s --check-prefix=AVX2 %}
// RUN: %if rustc %{ %asm-x86 --cpu znver5 %t-rust.ifunc | %FileCheck %s --check-prefix=AVX512 %}
// RUN: %if julia %{ %build %languages/dot.jl -o %t-julia.ifunc %}
// RUN: %if julia %{ %asm-x86 --cpu haswell %t-julia.ifunc | %FileCheck %s --check-prefix=AVX2 %}
// RUN: %if julia %{ %asm-x86 --cpu znver5 %t-julia.ifunc | %FileCheck %s --check-prefix=AVX512 %}
// RUN: %if julia %{ %asm-arm --cpu a64fx %t-julia.ifunc | %FileCheck %s --check-prefix=SVE %}
//
// AVX2-LABEL: ifunc_main:
// AVX2: vmovupd {{.*}}, %ymm
// AVX2-NEXT: vmovupd {{.*}}, %ymm
// AVX2-NEXT: vmovupd {{.*}}, %ymm
// AVX2-NEXT: vmovupd {{.*}}, %ymm
// AVX2-NEXT: vfmadd{{.*}}, %ymm
// AVX2-NEXT: vfmadd{{.*}}, %ymm
// AVX2-NEXT: vfmadd{{.*}}, %ymm
// AVX2-NEXT: vfmadd{{.*}}, %ymm
// AVX2-NOT: vmov{{.*}}(%rsp)
// AVX2: jne
//
// AVX512-LABEL: ifunc_main:
// AVX512: vfmadd{{.*}}, %zmm
// AVX512-NEXT: vfmadd{{.*}}, %zmm
// AVX512-NEXT: vfmadd{{.*}}, %zmm
// AVX512-NEXT: vfmadd{{.*}}, %zmm
//
// SVE-LABEL: ifunc_main:
// SVE: ld1d { z{{[0-9]+}}.d }
// SVE: fml{{a|s}} z{{[0-9]+}}.d
