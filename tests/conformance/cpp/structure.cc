// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

struct Order {
  uint32_t amount;
  int16_t change;
  uint8_t level;
  double price;
};
struct Answer {
  double total;
  int64_t left;
};

extern "C" void structure_main(void* payload, size_t, void*) {
  const auto& order = *static_cast<const Order*>(payload);
  const Answer answer{order.price * order.amount, int64_t{order.amount} + order.change - order.level};
  tc_reply(&answer, sizeof answer);
}
