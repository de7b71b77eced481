// SPDX-License-Identifier: Apache-2.0
__attribute__((noinline)) int helper(int x) { return x + 1; }
int state = 10;
int one_main(int x) { return helper(x) + state++; }
