// SPDX-License-Identifier: Apache-2.0
// A compiler that knows the C library turns this call into one of puts or putchar.
extern int printf(const char *format, ...);

int libcalls_main(void) { return printf("line\n"); }
