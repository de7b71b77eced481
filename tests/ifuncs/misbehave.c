// SPDX-License-Identifier: Apache-2.0
//
// Does what the payload says, good or bad: for the tests of cells, which must survive it.
#include <string.h>
#include <threechains/ifunc.h>

enum {
  ECHO = 0,      // replies with the bytes behind the header
  STORE = 1,     // replies with the bytes behind the header, if there are any, and writes to an address
  RECURSE = 2,   // without end
  CALL = 3,      // jumps to an address
  SYSTEM = 4,    // makes a system call, and replies with its result
  ABORT = 5,     // as abort() of the C library does
  LOOP = 6,      // for ever
  FORWARD = 7,   // replies with the status of tc_forward()
  PRODUCE = 8,   // replies with so many bytes
  READ = 9,      // replies with the data of the name behind the header
  WRITE = 10,    // writes into that data
  TALK = 11,     // logs and fails
  TWICE = 12,    // replies twice, and with the second status as a log level
  TARGET = 13,   // replies with *target_args
  CHATTER = 14,  // logs so many lines for developers
};

struct order {
  uint64_t what;
  uint64_t a[6];
};

static volatile uint64_t sink;

static long system_call(const uint64_t *a) {
  long result;
#if defined(__x86_64__)
  register uint64_t a4 __asm__("r10") = a[4], a5 __asm__("r8") = a[5], a6 __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(a[0]), "D"(a[1]), "S"(a[2]), "d"(a[3]), "r"(a4), "r"(a5), "r"(a6)
                   : "rcx", "r11", "memory");
#else
  register uint64_t number __asm__("x8") = a[0], a1 __asm__("x0") = a[1], a2 __asm__("x1") = a[2];
  register uint64_t a3 __asm__("x2") = a[3], a4 __asm__("x3") = a[4], a5 __asm__("x4") = a[5], a6 __asm__("x5") = 0;
  __asm__ volatile("svc #0" : "+r"(a1) : "r"(number), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a6) : "memory");
  result = (long)a1;
#endif
  return result;
}

__attribute__((noinline)) static uint64_t recurse(uint64_t depth) {
  volatile char room[256];
  room[depth % sizeof room] = (char)depth;
  const uint64_t below = recurse(depth + 1);
  return below + (uint64_t)room[depth % sizeof room];
}

static void stop(void) {
#if defined(__x86_64__)
  const uint64_t pid[6] = {39}, tid[6] = {186};
  const uint64_t kill[6] = {234, (uint64_t)system_call(pid), (uint64_t)system_call(tid), 6};
#else
  const uint64_t pid[6] = {172}, tid[6] = {178};
  const uint64_t kill[6] = {131, (uint64_t)system_call(pid), (uint64_t)system_call(tid), 6};
#endif
  system_call(kill);
}

static char produced[1 << 23];

static void produce(uint64_t size) {
  for (uint64_t i = 0; i < size && i < sizeof produced; ++i) produced[i] = (char)(i * 7);
  tc_reply(produced, size);
}

static void use_data(const char *name, const struct order *order) {
  size_t size = 0;
  char *const data = tc_data(name, &size);
  if (data == NULL) {
    tc_fail(2, "there is no such data");
    return;
  }
  if (order->what == WRITE) data[order->a[0]] = (char)order->a[1];
  tc_reply(data, size);
}

void misbehave_main(void *payload, size_t payload_size, void *target_args) {
  const struct order *const order = payload;
  const char *const rest = (const char *)payload + sizeof *order;
  uint64_t result = 0;
  switch (order->what) {
    case ECHO:
      tc_reply(rest, payload_size - sizeof *order);
      return;
    case STORE:
      if (payload_size > sizeof *order) tc_reply(rest, payload_size - sizeof *order);
      *(volatile int *)order->a[0] = 1;
      return;
    case RECURSE:
      sink = recurse(0);
      return;
    case CALL:
      ((void (*)(void))order->a[0])();
      sink = 1;
      return;
    case SYSTEM:
      result = (uint64_t)system_call(order->a);
      break;
    case ABORT:
      stop();
      return;
    case LOOP:
      for (;;) sink = sink + 1;
    case FORWARD:
      result = (uint64_t)tc_forward((uint32_t)order->a[0], rest, payload_size - sizeof *order);
      break;
    case PRODUCE:
      produce(order->a[0]);
      return;
    case READ:
    case WRITE:
      use_data(rest, order);
      return;
    case TALK:
      tc_log(2, "about to fail");
      tc_fail(42, "as it was told to");
      tc_fail(43, "again");
      return;
    case TWICE:
      tc_reply("one", 3);
      tc_log(tc_reply("two", 3) == TC_ERR_INVALID ? 3 : 0, "replied twice");
      return;
    case CHATTER:
      for (; result < order->a[0]; ++result) tc_log(0, "so many words");
      break;
    case TARGET:
      result = *(uint64_t *)target_args;
      break;
    default:
      tc_fail(1, "there is no such order");
      return;
  }
  tc_reply(&result, sizeof result);
}
