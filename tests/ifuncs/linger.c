// SPDX-License-Identifier: Apache-2.0
//
// Stays until the data `gate` is open, so that a test knows that a call runs. Then answers with its payload.
#include <threechains/ifunc.h>

struct gate {
  uint32_t inside;  // calls that came
  uint32_t open;
};

void linger_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  size_t size = 0;
  struct gate *const gate = tc_data("gate", &size);
  if (gate == NULL || size != sizeof *gate) return tc_fail(1, "there is no gate");
  __atomic_store_n(&gate->inside, __atomic_load_n(&gate->inside, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&gate->open, __ATOMIC_ACQUIRE) == 0) continue;
  tc_reply(payload, payload_size);
}
