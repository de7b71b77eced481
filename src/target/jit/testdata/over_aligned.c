// SPDX-License-Identifier: Apache-2.0
// Wants more than the alignment of a page.
static _Alignas(8192) char wide[8192];

char *over_aligned_main(int at) { return &wide[at]; }
