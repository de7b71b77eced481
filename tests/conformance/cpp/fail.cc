// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

extern "C" void fail_main(void*, size_t, void*) { tc_fail(42, "no such luck"); }
