// SPDX-License-Identifier: Apache-2.0
// Needs an instruction set that only a few AMD processors ever had.
typedef char bytes __attribute__((vector_size(16)));

__attribute__((target("xop"))) void xop_main(bytes *p) { p[0] = __builtin_ia32_vpperm(p[0], p[1], p[2]); }
