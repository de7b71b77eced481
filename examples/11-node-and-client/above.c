/* SPDX-License-Identifier: Apache-2.0
 *
 * Sent to the node, and run there: counts the readings above a limit. Only the count travels back.
 */
#include "above.h"

#include <threechains/ifunc.h>

void above_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  if (payload_size != sizeof(struct question)) {
    tc_fail(1, "a question is expected");
    return;
  }
  size_t size;
  const double *readings = tc_data("readings", &size);
  if (readings == NULL) {
    tc_fail(2, "there are no readings here");
    return;
  }
  const struct question *question = payload;
  struct answer answer = {.readings = size / sizeof *readings, .above = 0};
  for (uint64_t i = 0; i < answer.readings; ++i) answer.above += readings[i] > question->limit;
  tc_reply(&answer, sizeof answer);
}
