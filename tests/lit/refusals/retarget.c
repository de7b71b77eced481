// SPDX-License-Identifier: Apache-2.0
//
// Bitcode of a front end that knows one CPU is made into another's only where it says nothing about its own.
//
// RUN: %cases %s %t
// RUN: %bitcode -o %t/fp80.bc %t/fp80.c
// RUN: %refuses %t/fp80.bc --target aarch64-linux-gnu | %FileCheck %t/fp80.c
// RUN: %bitcode -o %t/intrinsic.bc %t/intrinsic.c
// RUN: %refuses %t/intrinsic.bc --target aarch64-linux-gnu | %FileCheck %t/intrinsic.c
// RUN: %bitcode -o %t/takes.bc %t/takes.c
// RUN: %refuses %t/takes.bc --extern area --target aarch64-linux-gnu | %FileCheck %t/takes.c
// RUN: %bitcode -o %t/gives.bc %t/gives.c
// RUN: %refuses %t/gives.bc --extern corner --target aarch64-linux-gnu | %FileCheck %t/gives.c
// RUN: %bitcode -o %t/assembly.bc %t/assembly.c
// RUN: %refuses %t/assembly.bc --allow-asm --target aarch64-linux-gnu | %FileCheck %t/assembly.c
// RUN: %bitcode -o %t/variadic.bc %t/variadic.c
// RUN: %refuses %t/variadic.bc --target aarch64-linux-gnu | %FileCheck %t/variadic.c
//
// For its own CPU each of them is fine; so is what stays in the file, for all.
// RUN: %build %t/fp80.bc -o %t.ifunc
// RUN: %build %t/intrinsic.bc -o %t.ifunc
// RUN: %build %t/takes.bc --extern area -o %t.ifunc
// RUN: %bitcode -o %t/inside.bc %t/inside.c
// RUN: %build %t/inside.bc --target aarch64-linux-gnu --target riscv64-linux-gnu -o %t.ifunc
// RUN: %asm-arm %t.ifunc | %FileCheck %t/inside.c

//--- fp80.c
void fp80_main(void *payload, unsigned long size, void *target) {
  // CHECK: fp80.c:[[#@LINE+1]]: {{.*}}cannot be made into aarch64-linux-gnu: it uses the type x86_fp80 (long double)
  *(double *)target = (double)(*(long double *)payload * size);
  // CHECK-SAME: or build for x86_64
}

//--- intrinsic.c
__attribute__((target("sse4.2"))) void intrinsic_main(void *payload, unsigned long size, void *target) {
  // CHECK: intrinsic.c:[[#@LINE+1]]: {{.*}}'llvm.x86.sse42.crc32.32.32' is an instruction of its own CPU
  *(unsigned *)target = __builtin_ia32_crc32si((unsigned)size, *(unsigned *)payload);
}

//--- takes.c
struct corner {
  unsigned long x, y, z;
};
unsigned long area(struct corner);
void takes_main(void *payload, unsigned long size, void *target) {
  // CHECK: takes.c:[[#@LINE+1]]: {{.*}}'area' takes a structure of 24 bytes by value, {{.*}}pass a pointer
  *(unsigned long *)target = area(*(struct corner *)payload) + size;
}

//--- gives.c
struct corner {
  unsigned long x, y, z;
};
struct corner corner(unsigned long);
void gives_main(void *payload, unsigned long size, void *target) {
  // CHECK: gives.c:[[#@LINE+1]]: {{.*}}'corner' returns a structure of 24 bytes by value, {{.*}}pass a pointer
  *(struct corner *)target = corner(size + *(int *)payload);
}

//--- assembly.c
void assembly_main(void *payload, unsigned long size, void *target) {
  // CHECK: assembly.c:[[#@LINE+1]]: {{.*}}it holds inline assembly
  __asm__ volatile("nop");
  *(unsigned long *)target = size + *(int *)payload;
}

//--- variadic.c
__attribute__((noinline)) static int sum(int count, ...) {
  __builtin_va_list list;
  int all = 0;
  // CHECK: variadic.c:[[#@LINE+1]]: {{.*}}it takes a variable number of arguments
  __builtin_va_start(list, count);
  while (count-- > 0) all += __builtin_va_arg(list, int);
  __builtin_va_end(list);
  return all;
}
void variadic_main(void *payload, unsigned long size, void *target) {
  *(int *)target = sum(2, (int)size, *(int *)payload);
}

//--- inside.c
struct corner {
  unsigned long x, y, z;
};
__attribute__((noinline)) static unsigned long area(struct corner c) { return c.x * c.y * c.z; }
void inside_main(void *payload, unsigned long size, void *target) {
  // CHECK: mul
  *(unsigned long *)target = area(*(struct corner *)payload) + size;
}
