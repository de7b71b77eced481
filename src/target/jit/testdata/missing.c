// SPDX-License-Identifier: Apache-2.0
extern int missing_b(int x);
extern int missing_a(int x);

int missing_main(int x) { return missing_b(x) + missing_a(x); }
