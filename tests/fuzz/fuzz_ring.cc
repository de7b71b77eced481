// SPDX-License-Identifier: Apache-2.0
//
// What a hostile sender can write into a ring. The oracle: readers stay inside their memory (AddressSanitizer sees to the
// rest), and never say that they consumed more than there is.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "read_frames.h"
#include "transport/ring/ring.h"

using namespace tc;             // NOLINT
using namespace tc::transport;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t ring_bytes = 4096;
  constexpr unsigned steps = 2000;
  // A block of exactly the ring's size, so that one byte outside is seen.
  void* const memory = std::aligned_alloc(64, ring_memory_bytes(ring_bytes));
  const RingView ring = RingView::at(memory, ring_bytes);
  std::memset(memory, 0, ring_memory_bytes(ring_bytes));
  RingIn::start(ring);
  std::memcpy(ring.data, data, std::min(size, ring_bytes));
  {
    RingIn reader;
    reader.open(ring);
    fuzz::read_frames(reader, steps);
    fuzz::expect(reader.consumed() <= uint64_t{steps} * ring_bytes);
    reader.shut();
  }
  std::free(memory);
  return 0;
}
