// SPDX-License-Identifier: Apache-2.0
//
// The increment of examples/01-increment, in code that needs ten functions of the target: what their addresses cost
// when the code arrives. None is called, for the payload is one byte.
#include <string.h>
#include <threechains/ifunc.h>

void ten_symbols_main(void *payload, size_t payload_size, void *target_args) {
  ++*(uint64_t *)target_args;
  if (payload_size < 2) return;
  size_t size = 0;
  void *const data = tc_data("nothing", &size);
  if (data != NULL) memcpy(payload, data, size);
  tc_log(0, "this is not reached");
  tc_inject(tc_id(), "nothing", payload, payload_size);
  tc_reply(payload, payload_size);
  tc_forward(tc_count(), payload, payload_size);
  tc_forward_as(0, "nothing", payload, payload_size);
  tc_fail(1, "nor this");
}
