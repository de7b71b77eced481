/* SPDX-License-Identifier: Apache-2.0
 *
 *   load ADDRESS DIGEST.ifunc FNV1A.ifunc XXH64.ifunc [SENDERS [SWAPS]]
 *
 * SENDERS processes call `digest` as fast as the node answers. Meanwhile this one swaps the hash function: FNV-1a first,
 * then XXH64, and so on, each SWAP as soon as every sender got answers after the last one. Every answer is checked: it is
 * wholly of one version; of the version that was acknowledged last, if no swap was under way while the call was. Exit code
 * 0: every call was answered, and none wrongly.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threechains/threechains.h>
#include <time.h>
#include <unistd.h>

#include "versions.h"

enum { most_senders = 16, in_flight = 32, payload_size = 4096, patience_ms = 20000, calls_between_swaps = 500 };

/* What the processes share. A swap is under way while it has begun and is not acknowledged. */
struct shared {
  atomic_uint begun, acknowledged;
  atomic_int stop;
  struct sender {
    atomic_ulong answers[2]; /* by version */
    atomic_ulong while_swapping, sent, wrong;
  } senders[most_senders];
};

struct call {
  tc_message_t *message;
  tc_future_t *future;
  unsigned acknowledged; /* when it was sent */
  struct digest expected[2];
};

static void must(tc_status_t status, const char *what) {
  if (status == TC_OK) return;
  fprintf(stderr, "load: %s: %s\n", what, tc_error_message());
  exit(1);
}

static tc_node_t *start(const char *address, tc_endpoint_t **endpoint) {
  tc_config_t *config = NULL;
  tc_node_t *node = NULL;
  must(tc_config_create(&config), "config");
  must(tc_config_set(config, "listen", "none"), "config");
  must(tc_node_create(config, &node), "node");
  tc_config_free(config);
  must(tc_node_connect(node, address, patience_ms, endpoint), "connecting");
  return node;
}

static void send_call(struct shared *shared, tc_endpoint_t *endpoint, struct call *call, struct sender *counts) {
  call->acknowledged = atomic_load(&shared->acknowledged);
  must(tc_endpoint_call(endpoint, call->message, patience_ms, &call->future), "calling digest");
  atomic_fetch_add(&counts->sent, 1);
}

static void complain(struct sender *counts, const char *what, const struct digest *answer) {
  if (atomic_fetch_add(&counts->wrong, 1) < 5) fprintf(stderr, "load: %s (%.8s)\n", what, answer ? answer->name : "");
}

/* Waits for a call's answer and judges it. */
static void take_answer(struct shared *shared, struct call *call, struct sender *counts) {
  tc_status_t status = tc_future_wait(call->future, patience_ms);
  if (status == TC_OK) status = tc_future_status(call->future);
  const unsigned begun = atomic_load(&shared->begun);
  if (status != TC_OK) {
    atomic_fetch_add(&counts->wrong, 1);
    fprintf(stderr, "load: a call was lost: %s\n", tc_error_message());
  } else {
    size_t size = 0;
    const struct digest *const answer = tc_future_bytes(call->future, &size);
    int version = -1;
    for (int i = 0; i < 2; ++i)
      if (size == sizeof *answer && memcmp(answer, &call->expected[i], size) == 0) version = i;
    if (version < 0)
      complain(counts, "an answer is a mixture, or of neither version", size == sizeof *answer ? answer : NULL);
    else if (begun == call->acknowledged && version != (int)(begun % 2))
      complain(counts, "an answer is of a version that was not there", answer);
    else
      atomic_fetch_add(&counts->answers[version], 1);
    if (begun != call->acknowledged) atomic_fetch_add(&counts->while_swapping, 1);
  }
  tc_future_free(call->future);
  call->future = NULL;
}

static int run_sender(struct shared *shared, const char *address, const char *file, unsigned number) {
  struct sender *const counts = &shared->senders[number];
  static struct call calls[in_flight];
  tc_endpoint_t *endpoint = NULL;
  tc_ifunc_t *digest = NULL;
  tc_node_t *const node = start(address, &endpoint);
  must(tc_ifunc_register(node, file, &digest), "registering digest");
  for (unsigned i = 0; i < in_flight; ++i) {
    unsigned char payload[payload_size];
    for (size_t j = 0; j < sizeof payload; ++j) payload[j] = (unsigned char)(j * (2 * i + 1) + number);
    must(tc_message_create(digest, payload, sizeof payload, &calls[i].message), "message");
    for (int version = 0; version < 2; ++version) expect(version, payload, sizeof payload, &calls[i].expected[version]);
    send_call(shared, endpoint, &calls[i], counts);
  }
  while (!atomic_load(&shared->stop) && atomic_load(&counts->wrong) == 0)
    for (unsigned i = 0; i < in_flight; ++i) {
      take_answer(shared, &calls[i], counts);
      send_call(shared, endpoint, &calls[i], counts);
    }
  for (unsigned i = 0; i < in_flight; ++i) {
    take_answer(shared, &calls[i], counts);
    tc_message_free(calls[i].message);
  }
  tc_endpoint_free(endpoint, 1000);
  tc_node_free(node);
  return atomic_load(&counts->wrong) == 0 ? 0 : 1;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void inject(tc_node_t *node, tc_endpoint_t *endpoint, const char *file) {
  tc_ifunc_t *library = NULL;
  tc_message_t *message = NULL;
  tc_future_t *future = NULL;
  must(tc_ifunc_register(node, file, &library), file);
  must(tc_message_create(library, NULL, 0, &message), file);
  must(tc_endpoint_call(endpoint, message, patience_ms, &future), file);
  if (tc_future_wait(future, patience_ms) != TC_OK || tc_future_status(future) != TC_OK) {
    fprintf(stderr, "load: %s was refused: %s\n", file, tc_error_message());
    exit(1);
  }
  tc_future_free(future);
  tc_message_free(message);
}

/* Until every sender got answers of the version that is there now. False when one of them has given up. */
static int wait_for_answers(struct shared *shared, unsigned senders) {
  const unsigned version = atomic_load(&shared->acknowledged) % 2;
  const double end = now_ms() + patience_ms;
  for (unsigned i = 0; i < senders; ++i) {
    struct sender *const sender = &shared->senders[i];
    const unsigned long before = atomic_load(&sender->answers[version]);
    while (atomic_load(&sender->answers[version]) < before + calls_between_swaps) {
      if (now_ms() > end || atomic_load(&sender->wrong) != 0) return 0;
      usleep(200);
    }
  }
  return 1;
}

static void report(struct shared *shared, unsigned senders, unsigned swaps, double ms) {
  unsigned long of[2] = {0, 0}, sent = 0, between = 0, wrong = 0;
  for (unsigned i = 0; i < senders; ++i) {
    for (int version = 0; version < 2; ++version) of[version] += atomic_load(&shared->senders[i].answers[version]);
    sent += atomic_load(&shared->senders[i].sent);
    between += atomic_load(&shared->senders[i].while_swapping);
    wrong += atomic_load(&shared->senders[i].wrong);
  }
  printf("%u senders made %lu calls in %.1f s, while the hash function was swapped %u times\n", senders, sent, ms / 1e3,
         swaps);
  printf("  answered wholly by FNV-1a  %lu\n  answered wholly by XXH64   %lu\n", of[0], of[1]);
  printf("  (under way during a swap   %lu)\n", between);
  printf("  lost                       %lu\n  mixed or stale             %lu\n", sent - of[0] - of[1] - wrong, wrong);
}

static int swap_under_load(struct shared *shared, char **files, const char *address, unsigned senders, unsigned swaps) {
  tc_endpoint_t *endpoint = NULL;
  tc_node_t *const node = start(address, &endpoint);
  const double begin = now_ms();
  int fine = wait_for_answers(shared, senders);
  unsigned done = 0;
  double longest = 0;
  for (; fine && done < swaps; ++done) {
    const double sent = now_ms();
    const unsigned next = atomic_fetch_add(&shared->begun, 1) + 1;
    inject(node, endpoint, files[next % 2]);
    atomic_store(&shared->acknowledged, next);
    longest = now_ms() - sent > longest ? now_ms() - sent : longest;
    fine = wait_for_answers(shared, senders);
  }
  atomic_store(&shared->stop, 1);
  for (unsigned i = 0; i < senders; ++i) {
    int status = 0;
    if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) fine = 0;
  }
  report(shared, senders, done, now_ms() - begin);
  printf("  longest swap               %.1f ms, from sending it to its acknowledgement\n", longest);
  tc_endpoint_free(endpoint, 1000);
  tc_node_free(node);
  return fine;
}

/* The first version must be there before anybody uses it. In a process of its own: UCX does not live through a fork. */
static int inject_first(const char *address, const char *file) {
  tc_endpoint_t *endpoint = NULL;
  tc_node_t *const node = start(address, &endpoint);
  inject(node, endpoint, file);
  tc_endpoint_free(endpoint, 1000);
  tc_node_free(node);
  return 0;
}

static int child_failed(void) {
  int status = 0;
  return wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: load ADDRESS DIGEST.ifunc FNV1A.ifunc XXH64.ifunc [SENDERS [SWAPS]]\n");
    return 2;
  }
  const int senders = argc > 5 ? atoi(argv[5]) : 3, swaps = argc > 6 ? atoi(argv[6]) : 20;
  if (senders < 1 || senders > most_senders || swaps < 0) {
    fprintf(stderr, "load: %s senders when 1 to %d are possible\n", argv[5], most_senders);
    return 2;
  }
  struct shared *const shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  fflush(stdout);
  if (fork() == 0) return inject_first(argv[1], argv[3]);
  if (child_failed()) return 1;
  for (int i = 0; i < senders; ++i)
    if (fork() == 0) return run_sender(shared, argv[1], argv[2], (unsigned)i);
  return swap_under_load(shared, argv + 3, argv[1], (unsigned)senders, (unsigned)swaps) ? 0 : 1;
}
