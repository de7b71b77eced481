// SPDX-License-Identifier: Apache-2.0
//
// Adds the payload's number (or one) to a counter that lives at the target, and answers with the new value. The
// counter is what the target hands to its ifuncs, or else the data that it exposes as "counter".
#include <string.h>
#include <threechains/ifunc.h>

void increment_main(void *payload, size_t payload_size, void *target_args) {
  size_t size = sizeof(uint64_t);
  uint64_t *counter = target_args ? target_args : tc_data("counter", &size);
  if (!counter || size < sizeof *counter) {
    tc_fail(1, "this node has no counter: expose 8 bytes as \"counter\"");
    return;
  }
  uint64_t step = 1;
  if (payload_size >= sizeof step) memcpy(&step, payload, sizeof step);
  *counter += step;
  tc_reply(counter, sizeof *counter);
}
