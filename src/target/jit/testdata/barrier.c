// SPDX-License-Identifier: Apache-2.0
// Assembly without an instruction: what must not be moved or left out.
int barrier_main(int value) {
  __asm__ volatile("" ::: "memory");
  __asm__ volatile("" : "+r"(value));
  return value + 1;
}
