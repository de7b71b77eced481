// SPDX-License-Identifier: Apache-2.0
//
// Ends the process that runs it, in the way that the first byte of the payload says. Any other byte is answered.
#include <string.h>
#include <threechains/ifunc.h>

static int *volatile nowhere = 0;
static volatile uintptr_t far_away = 0x7000dead0000;

__attribute__((noinline)) static int dig(volatile char *above) {
  volatile char room[4096];
  room[0] = above != 0 ? above[0] : 1;
  return dig(room) + room[0];
}

static void crash(char how, size_t size) {
  switch (how) {
    case 'n':
      *nowhere = 1;
      break;
    case 'w':
      *(volatile int *)far_away = 1;
      break;
    case 'r':
      *nowhere = dig(0);
      break;
    case 'm':
      memset((void *)nowhere, 1, size + 100000);
      break;
    case 'l':
      for (volatile int i = 0;; i = i + 1) continue;
    case 'f':
      tc_reply((const void *)far_away, 64);
      break;
  }
}

void crash_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  if (payload_size > 0) crash(*(const char *)payload, payload_size);
  tc_reply(payload, payload_size);
}
