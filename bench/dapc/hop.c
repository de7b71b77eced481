// SPDX-License-Identifier: Apache-2.0
//
// Goes to and fro between two servers, in messages as long as the Chaser's: what one hop takes.
#include <threechains/ifunc.h>

struct pingpong {
  uint32_t hops_to_go, one, other, padding;
};

void pingpong_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  struct pingpong *ball = payload;
  if (payload_size != sizeof *ball) {
    tc_fail(1, "a ball is 16 bytes");
    return;
  }
  if (ball->hops_to_go == 0) {
    tc_reply(NULL, 0);
    return;
  }
  --ball->hops_to_go;
  const tc_status_t status = tc_forward(tc_id() == ball->one ? ball->other : ball->one, ball, sizeof *ball);
  if (status != TC_OK) tc_fail((int32_t)status, "the other server cannot be reached");
}
