// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <algorithm>

extern "C" void reply_main(void* payload, size_t payload_size, void*) {
  auto* const text = static_cast<char*>(payload);
  std::reverse(text, text + payload_size);
  tc_reply(text, payload_size);
}
