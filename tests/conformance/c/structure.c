// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

struct order {
  uint32_t amount;
  int16_t change;
  uint8_t level;
  double price;
};
struct answer {
  double total;
  int64_t left;
};

void structure_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const struct order *const order = payload;
  const struct answer answer = {order->price * order->amount, (int64_t)order->amount + order->change - order->level};
  tc_reply(&answer, sizeof answer);
}
