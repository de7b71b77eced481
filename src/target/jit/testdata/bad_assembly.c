// SPDX-License-Identifier: Apache-2.0
// Bitcode takes any text here; only code generation finds out.
void bad_assembly_main(void) { __asm__ volatile("no such instruction"); }
