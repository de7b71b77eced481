// SPDX-License-Identifier: Apache-2.0
__attribute__((noinline)) int helper(int x) { return x + 2; }
int state = 20;
int two_main(int x) { return helper(x) + state++; }
