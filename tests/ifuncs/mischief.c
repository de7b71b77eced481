// SPDX-License-Identifier: Apache-2.0
//
// Does what code of a stranger may try, through the C library as such code would. The payload is a word that says
// what, and for some a number behind it. Answers with what it got.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <threechains/ifunc.h>
#include <unistd.h>

void mischief_main(void *payload, size_t payload_size, void *target_args);

static int is(const char *order, const char *word) { return strncmp(order, word, strlen(word)) == 0; }

static void got(const char *what) { tc_reply(what, strlen(what)); }

static void get_memory(void) {
  const size_t hundred_gb = (size_t)100 << 30;
  void *volatile memory = malloc(hundred_gb);  // a compiler that sees nobody use it takes it for granted
  if (memory != NULL) return got("memory of malloc");
  if (mmap(NULL, hundred_gb, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
    return got("memory of mmap");
  tc_fail(12, "there is no memory");
}

// All that there is, piece by piece, and writes to it.
static void use_memory(void) {
  const size_t piece = (size_t)1 << 20, most = (size_t)4 << 30;
  for (size_t used = 0; used < most; used += piece) {
    char *volatile memory = malloc(piece);
    if (memory == NULL) return tc_fail(12, "there is no more memory");
    memset(memory, 1, piece);
  }
  got("4 GiB");
}

static void write_data(void) {
  size_t size = 0;
  char *const data = tc_data("text", &size);
  if (data == NULL || size == 0) return tc_fail(2, "there is no data");
  *(volatile char *)data = 'X';
  got("data");
}

static void write_code(void) {
  void (*volatile code)(void *, size_t, void *) = mischief_main;
  *(volatile char *)code = 0;
  got("code");
}

void mischief_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char order[64] = {0};
  memcpy(order, payload, payload_size < sizeof order ? payload_size : sizeof order - 1);
  const char *const space = strchr(order, ' ');
  const pid_t process = space != NULL ? (pid_t)strtol(space, NULL, 10) : 0;
  if (is(order, "exit")) exit(3);
  if (is(order, "leave")) syscall(SYS_exit_group, 3);  // exit() and _exit() become failures when this is built
  if (is(order, "abort")) abort();
  if (is(order, "raise")) raise(SIGABRT);
  if (is(order, "get memory")) return get_memory();
  if (is(order, "use memory")) return use_memory();
  if (is(order, "fork")) return got(fork() >= 0 ? "a process" : "no process");
  if (is(order, "open")) return got(open("/etc/passwd", O_RDONLY) >= 0 ? "a file" : "no file");
  if (is(order, "socket")) return got(socket(AF_INET, SOCK_STREAM, 0) >= 0 ? "a socket" : "no socket");
  if (is(order, "ptrace")) return got(ptrace(PTRACE_ATTACH, process, 0, 0) == 0 ? "its parent" : "no process");
  if (is(order, "kill")) return got(kill(process, SIGKILL) == 0 ? "its parent" : "no process");
  if (is(order, "write data")) return write_data();
  if (is(order, "write code")) return write_code();
  tc_reply(payload, payload_size);
}
