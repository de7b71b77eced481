// SPDX-License-Identifier: Apache-2.0
__attribute__((weak)) int perhaps(void);

int weak_main(void) { return perhaps ? perhaps() : -1; }
