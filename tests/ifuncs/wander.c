// SPDX-License-Identifier: Apache-2.0
//
// Goes round the cluster as often as its payload says, in text: "1000". Answers with the number of the node where it
// ends.
#include <threechains/ifunc.h>

void wander_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const char *digits = payload;
  uint32_t hops = 0;
  for (size_t i = 0; i < payload_size; ++i) hops = hops * 10 + (uint32_t)(digits[i] - '0');
  if (hops == 0) {
    const char answer = (char)('0' + tc_id());
    tc_reply(&answer, 1);
    return;
  }
  char text[10];
  size_t length = 0;
  for (uint32_t rest = hops - 1; rest != 0 || length == 0; rest /= 10)
    text[sizeof text - ++length] = (char)('0' + rest % 10);
  const tc_status_t status = tc_forward((tc_id() + 1) % tc_count(), text + sizeof text - length, length);
  if (status != TC_OK) tc_fail((int32_t)status, "cannot go on");
}
