// SPDX-License-Identifier: Apache-2.0
//
// Answers with the data whose name is its payload.
#include <threechains/ifunc.h>

void peek_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char name[64] = {0};
  for (size_t i = 0; i < payload_size && i < sizeof name - 1; ++i) name[i] = ((const char *)payload)[i];
  size_t size = 0;
  const void *data = tc_data(name, &size);
  if (data == NULL) return tc_fail(1, "there is no such data");
  tc_reply(data, size);
}
