/* SPDX-License-Identifier: Apache-2.0
 *
 * Two nodes of one process, for counting the instructions of a call or a hop where time is too noisy:
 *
 *     valgrind --tool=callgrind build/release/bin/instructions call|hop IFUNC TRANSPORT COUNT
 *
 * `call` sends COUNT cached calls of tsi.ifunc (examples/01-increment) one by one; `hop` sends one token.ifunc
 * (examples/04-token) on COUNT hops. The difference between two counts is the cost of the calls between them. See
 * docs/measuring.md.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threechains/threechains.h>

static tc_node_t *nodes[2];
static atomic_int connected;

static void check(tc_status_t status) {
  if (status == TC_OK) return;
  fprintf(stderr, "instructions: %s\n", tc_error_message());
  exit(1);
}

static tc_node_t *make_node(const char *id, const char *listen, const char *cluster, const char *transport) {
  tc_config_t *config = NULL;
  tc_node_t *node = NULL;
  check(tc_config_create(&config));
  check(tc_config_set(config, "id", id));
  check(tc_config_set(config, "listen", listen));
  check(tc_config_set(config, "cluster", cluster));
  check(tc_config_set(config, "transport", transport));
  check(tc_config_set(config, "trust-network", "127.0.0.0/8")); /* plain TCP */
  check(tc_config_set(config, "log", "error"));
  check(tc_config_set(config, "tune", "off"));
  check(tc_config_set(config, "hops", "65535"));
  check(tc_node_create(config, &node));
  tc_config_free(config);
  return node;
}

static void *progress_target(void *unused) {
  (void)unused;
  while (!connected) check(tc_node_wait(nodes[1], 10, NULL));
  return NULL;
}

static void call(tc_endpoint_t *endpoint, tc_message_t *message, long count) {
  for (long i = 0; i < count; ++i) {
    size_t executed = 0;
    check(tc_endpoint_send(endpoint, message));
    check(tc_node_poll(nodes[0], NULL));
    while (executed == 0) check(tc_node_poll(nodes[1], &executed));
  }
}

static void hop(tc_endpoint_t *endpoint, tc_message_t *message) {
  tc_future_t *future = NULL;
  check(tc_endpoint_call(endpoint, message, 0, &future));
  while (!tc_future_ready(future))
    for (int i = 0; i < 2; ++i) check(tc_node_poll(nodes[i], NULL));
  check(tc_future_status(future));
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s call|hop IFUNC TRANSPORT COUNT\n", argv[0]);
    return 2;
  }
  static const char *const addresses[] = {"127.0.0.1:17431", "127.0.0.1:17432"};
  const uint32_t count = (uint32_t)strtoul(argv[4], NULL, 10);
  static uint64_t counter;
  uint64_t payload = strcmp(argv[1], "hop") == 0 ? count : 1;
  char cluster[64];
  snprintf(cluster, sizeof cluster, "%s,%s", addresses[0], addresses[1]);
  nodes[0] = make_node("0", addresses[0], cluster, argv[3]);
  nodes[1] = make_node("1", addresses[1], cluster, argv[3]);
  tc_node_set_target_args(nodes[1], &counter);

  pthread_t thread;
  tc_endpoint_t *endpoint = NULL;
  tc_ifunc_t *ifunc = NULL;
  tc_message_t *message = NULL;
  pthread_create(&thread, NULL, progress_target, NULL);
  check(tc_node_connect(nodes[0], addresses[1], 10000, &endpoint));
  check(tc_ifunc_register(nodes[0], argv[2], &ifunc));
  check(tc_message_create(ifunc, &payload, argv[1][0] == 'h' ? sizeof(uint32_t) : 1, &message));
  connected = 1;
  pthread_join(thread, NULL);
  if (argv[1][0] == 'h')
    hop(endpoint, message);
  else
    call(endpoint, message, count);
  tc_message_free(message);
  tc_node_free(nodes[0]);
  tc_node_free(nodes[1]);
  return 0;
}
