// SPDX-License-Identifier: Apache-2.0
// Without position-independent code, a variable elsewhere is taken to be near.
extern int host_value;

int near_variable_main(void) { return host_value; }
