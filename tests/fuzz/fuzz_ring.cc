// SPDX-License-Identifier: Apache-2.0
//
// What a hostile sender can write: the bytes of a ring, a batch, a greeting, an offer. The oracle: readers stay
// inside their memory (AddressSanitizer sees to the rest), and never say that they consumed more than there is.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "transport/batch_in.h"
#include "transport/greeting.h"
#include "transport/offer.h"
#include "transport/ring_in.h"

namespace {

using namespace tc;
using namespace tc::transport;

constexpr size_t ring_bytes = 4096;

class Reader final : public RingIn {
 public:
  explicit Reader(const RingView& ring) : RingIn(1024, 4096) { use_ring(ring); }
};

void require(bool truth) {
  if (!truth) std::abort();
}

// Reads as the receiver of a node does. Returns the bytes of frames seen.
uint64_t read_all(InStream& in, unsigned limit) {
  volatile std::byte sink{};
  for (unsigned i = 0; i < limit; ++i) {
    const uint64_t word = in.peek();
    const auto header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad) {
      if (!in.refill()) break;
      continue;
    }
    if (!in.fits(header.length)) break;
    if (header.length != 0) sink = in.body()[header.length - 1];
    in.advance(header.length);
  }
  (void)sink;
  in.release();
  return in.consumed();
}

void fuzz_ring(ByteView bytes) {
  // A block of exactly the ring's size, so that one byte outside is seen.
  void* const memory = std::aligned_alloc(64, ring_memory_bytes(ring_bytes));
  const RingView ring = RingView::at(memory, ring_bytes);
  std::memset(memory, 0, ring_memory_bytes(ring_bytes));
  RingIn::start(ring, 1);
  std::memcpy(ring.data, bytes.data(), std::min(bytes.size(), ring_bytes));
  {
    Reader reader(ring);
    constexpr unsigned steps = 2000;
    const uint64_t read = read_all(reader, steps);
    require(read <= uint64_t{steps} * ring_bytes);
  }
  std::free(memory);
}

void fuzz_batch(ByteView bytes) {
  BatchIn in(1024, 4096);
  while (!bytes.empty()) {  // the first byte of each batch says how long it is
    const size_t size = std::min<size_t>(static_cast<size_t>(bytes[0]) * 8, bytes.size() - 1);
    (void)in.append(bytes.subspan(1, size));
    bytes = bytes.subspan(1 + size);
    if (size % 16 == 0) read_all(in, 1000);
  }
  read_all(in, 100000);
  require(in.consumed() == in.received() || in.peek() != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: fuzz_ring(bytes); break;
    case 1: fuzz_batch(bytes); break;
    case 2: (void)decode_greeting(bytes); break;
    case 3: (void)decode_offer(bytes); break;
  }
  return 0;
}
