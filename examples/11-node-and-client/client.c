/* SPDX-License-Identifier: Apache-2.0
 *
 *     client ADDRESS:PORT LIMIT
 *
 * Sends the function `above` to a node, and prints what it answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threechains/threechains.h>

#include "above.h"

enum { patience_ms = 10000 };

static void check(tc_status_t status, const char *what) {
  if (status == TC_OK) return;
  fprintf(stderr, "client: %s: %s\n", what, tc_error_message());
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: client ADDRESS:PORT LIMIT\n");
    return 2;
  }
  tc_node_t *self;
  tc_endpoint_t *node;
  tc_ifunc_t *above;
  check(tc_node_create(NULL, &self), "starting");
  check(tc_node_connect(self, argv[1], patience_ms, &node), "connecting");
  check(tc_ifunc_register(self, "above", &above), "above"); /* above.ifunc, here or in $TC_IFUNC_PATH */

  const struct question question = {.limit = atof(argv[2])};
  tc_message_t *message;
  tc_future_t *future;
  check(tc_message_create(above, &question, sizeof question, &message), "message");
  check(tc_endpoint_call(node, message, patience_ms, &future), "calling");
  check(tc_future_wait(future, patience_ms), "waiting");
  if (tc_future_status(future) != TC_OK) {
    fprintf(stderr, "client: %s\n", tc_future_error(future));
    return 1;
  }
  size_t size;
  struct answer answer;
  const void *bytes = tc_future_bytes(future, &size);
  if (size != sizeof answer) return 1;
  memcpy(&answer, bytes, size);
  printf("%llu of %llu readings are above %g\n", (unsigned long long)answer.above, (unsigned long long)answer.readings,
         question.limit);

  tc_future_free(future);
  tc_message_free(message);
  tc_ifunc_free(above);
  check(tc_endpoint_free(node, patience_ms), "closing");
  tc_node_free(self);
  return 0;
}
