// SPDX-License-Identifier: Apache-2.0
//
// What an unauthenticated peer sends first, on TCP, on a Unix socket and of UCX. The oracle: what is understood comes back as it was.
#include <algorithm>

#include "read_frames.h"
#include "transport/greeting.h"
#include "wire/frame.h"

using namespace tc;             // NOLINT
using namespace tc::transport;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto head = decode_greeting_head(bytes.first(std::min(size, greeting_head_bytes)));
  fuzz::expect(!head || *head <= max_greeting_bytes);
  if (const auto greeting = decode_greeting(bytes)) {
    fuzz::expect(std::ranges::equal(encode_greeting(*greeting), bytes));
    (void)wire::decode_hello(greeting->hello);
  }
  return 0;
}
