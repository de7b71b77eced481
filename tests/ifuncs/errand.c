/* SPDX-License-Identifier: Apache-2.0
 * Travels by the nodes that its payload names, one digit for each, and answers with the data `secret` of the last one. */
#include <threechains/ifunc.h>

void errand_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const char *way = payload;
  if (payload_size == 0) {
    size_t size = 0;
    const void *secret = tc_data("secret", &size);
    if (secret == NULL) return tc_fail(1, "no secret for me");
    return (void)tc_reply(secret, size);
  }
  const tc_status_t sent = tc_forward((uint32_t)(way[0] - '0'), way + 1, payload_size - 1);
  if (sent != TC_OK) tc_fail((int32_t)sent, "could not travel on");
}
