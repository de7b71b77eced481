// SPDX-License-Identifier: Apache-2.0
//
// One generic bundle; each CPU gets the vectors that it has (main paper, III.C: SVE on A64FX from bitcode made on a
// Xeon, AVX2 the other way round).
//
// RUN: %build %s --name saxpy -o %t.ifunc
// RUN: %asm-x86 %t.ifunc | %FileCheck %s --check-prefix=X86
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %s --check-prefix=X86
// RUN: %asm-x86 --cpu haswell %t.ifunc | %FileCheck %s --check-prefix=AVX2
// RUN: %asm-x86 --cpu sapphirerapids %t.ifunc | %FileCheck %s --check-prefix=AVX512
// RUN: %asm-x86 --cpu znver5 %t.ifunc | %FileCheck %s --check-prefix=AVX512
// RUN: %asm-arm %t.ifunc | %FileCheck %s --check-prefix=ARM
// RUN: %asm-arm --cpu generic %t.ifunc | %FileCheck %s --check-prefix=ARM
// RUN: %asm-arm --cpu a64fx %t.ifunc | %FileCheck %s --check-prefix=SVE
//
// The same from a bundle that holds no machine code: nothing of it is needed.
// RUN: %build %s --name saxpy --no-object -o %t-bitcode.ifunc
// RUN: %asm-x86 %t-bitcode.ifunc | %FileCheck %s --check-prefix=X86
// RUN: %asm-x86 --cpu sapphirerapids %t-bitcode.ifunc | %FileCheck %s --check-prefix=AVX512
// RUN: %asm-arm --cpu a64fx %t-bitcode.ifunc | %FileCheck %s --check-prefix=SVE
//
// X86-LABEL: ifunc_main:
// X86-NOT: {{[yz]mm}}
// X86: mulps {{.*}}xmm
// X86-NOT: {{[yz]mm}}
//
// AVX2-LABEL: ifunc_main:
// AVX2-NOT: zmm
// AVX2: vfmadd{{.*}}ymm
// AVX2-NOT: zmm
//
// AVX512-LABEL: ifunc_main:
// AVX512: vfmadd{{.*}}zmm
//
// ARM-LABEL: ifunc_main:
// ARM-NOT: {{z[0-9]+\.s}}
// ARM: fmla v{{[0-9]+}}.4s
// ARM-NOT: {{z[0-9]+\.s}}
//
// SVE-LABEL: ifunc_main:
// SVE: ld1w { z{{[0-9]+}}.s }
// SVE: fm{{ad|la}} z{{[0-9]+}}.s
// SVE: st1w { z{{[0-9]+}}.s }
#include <threechains/ifunc.h>

struct work {
  long length;
  float factor;
  const float *x;
  float *y;
};

void saxpy_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const struct work *const work = payload;
  const float factor = work->factor;
  const float *restrict const x = work->x;
  float *restrict const y = work->y;
  for (long i = 0; i < work->length; ++i) y[i] += factor * x[i];
}
