// SPDX-License-Identifier: Apache-2.0
static _Thread_local int mine = 1;
int thread_local_main(void) { return mine++; }
