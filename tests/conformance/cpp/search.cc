// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <algorithm>
#include <string_view>

extern "C" void search_main(void* payload, size_t payload_size, void*) {
  size_t size = 0;
  const auto* const begin = static_cast<const char*>(tc_data("text", &size));
  const std::string_view text(begin, size), needle(static_cast<const char*>(payload), payload_size);
  const auto at = std::search(text.begin(), text.end(), needle.begin(), needle.end());
  const uint64_t found = at == text.end() ? UINT64_MAX : static_cast<uint64_t>(at - text.begin());
  tc_reply(&found, sizeof found);
}
