// SPDX-License-Identifier: Apache-2.0
// Uses what libraries keep for a thread, functions that the C library chooses as it is loaded, and symbols of several versions.
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <threechains/ifunc.h>
#include <time.h>

static uint64_t calls;
static time_t last;

__attribute__((weak)) uint64_t weak_function(uint64_t n) { return n + 1; }
__attribute__((weak)) uint64_t weak_variable = 40;

static uint64_t is_now(time_t now) {
  const int is_later = now >= last;
  last = now;
  return is_later && now > 1700000000;
}

// What it was before differs from thread to thread.
static uint64_t blocks_and_unblocks(void) {
  sigset_t before, both, during, after;
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigprocmask(SIG_BLOCK, &both, &before);
  sigprocmask(SIG_SETMASK, &before, &during);
  sigprocmask(SIG_SETMASK, NULL, &after);
  return (uint64_t)sigismember(&during, SIGUSR1) * 10 +
         (uint64_t)(sigismember(&after, SIGUSR1) == sigismember(&before, SIGUSR1));
}

void library_state_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  uint64_t answer[12] = {++calls};
  answer[1] = is_now(time(NULL));
  struct timeval tv = {0, 0};
  answer[2] = (uint64_t)gettimeofday(&tv, NULL) * 10 + is_now(tv.tv_sec);
  struct timespec ts = {0, 0};
  answer[3] = (uint64_t)clock_gettime(CLOCK_REALTIME, &ts) * 10 + is_now(ts.tv_sec);
  errno = 0;
  answer[4] = (uint64_t)strtol("99999999999999999999999", NULL, 10) + (uint64_t)(errno == ERANGE);
  errno = 0;
  volatile double large = 1000.0 * (double)n;
  answer[5] = (uint64_t)isinf(exp(large)) * 10 + (uint64_t)(errno == ERANGE);
  answer[6] = weak_function(n) + weak_variable++;
  pthread_cond_t condition;
  answer[7] = (uint64_t)(pthread_cond_init(&condition, NULL) + pthread_cond_signal(&condition) +
                         pthread_cond_destroy(&condition));
  answer[8] = blocks_and_unblocks();
  char text[] = "a,b,c", *rest = NULL;
  answer[9] = strlen(strtok_r(text, ",", &rest)) + strlen(rest);
  char *const copy = strdup("copied");
  answer[10] = strlen(copy) + (uint64_t)memcmp(copy, "copied", 7);
  free(copy);
  errno = (int)n;
  answer[11] = (uint64_t)errno;
  tc_reply(answer, sizeof answer);
}
