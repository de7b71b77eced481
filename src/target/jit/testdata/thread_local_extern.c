// SPDX-License-Identifier: Apache-2.0
extern _Thread_local int theirs;
int thread_local_extern_main(void) { return theirs; }
