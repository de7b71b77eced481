// SPDX-License-Identifier: Apache-2.0
// Runs an ifunc without any node: compiled with it, natively. -DMAIN= names its entry. Calls it with each argument, a number, as
// its payload, and prints the answers.
#include <stdio.h>
#include <stdlib.h>
#include <threechains/ifunc.h>

void MAIN(void *payload, size_t payload_size, void *target_args);

tc_status_t tc_reply(const void *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) printf("%02x", ((const uint8_t *)bytes)[i]);
  printf("\n");
  return TC_OK;
}

int main(int count, char **arguments) {
  for (int i = 1; i < count; ++i) {
    uint64_t payload = strtoull(arguments[i], NULL, 10);
    MAIN(&payload, sizeof payload, NULL);
  }
  return 0;
}
