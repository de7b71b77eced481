// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <array>

extern "C" void named_data_main(void*, size_t, void*) {
  size_t size = 0;
  tc_data("text", &size);
  const std::array<uint64_t, 2> answer{size, tc_data("nothing", nullptr) != nullptr};
  tc_reply(answer.data(), sizeof answer);
}
