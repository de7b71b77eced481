// SPDX-License-Identifier: Apache-2.0
// Reaches into the host: a function, a variable.
extern int host_add(int a, int b);
extern int host_value;

int calls_main(int x) { return host_add(x, host_value); }
