// SPDX-License-Identifier: Apache-2.0
//
// The floor below large payloads in shared memory: two threads pass a payload through a ring in pieces, without any runtime.
// One writes it from a warm buffer, the other one copies it into another warm buffer, and the next one begins when it is
// there. How large the ring is, and who copies how, decides most of it (docs/measuring.md).
//
//     stream_floor [PAYLOAD [RING [PIECE [memcpy|lines]]]]        not part of `all`: ninja stream_floor
//
// Sizes in bytes; PIECE divides RING. `lines`: the reader copies as src/node/link/pieces.cc does.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace {

constexpr size_t line_bytes = 64;
constexpr double bytes_in_all = 600e6;

struct alignas(line_bytes) Position {
  std::atomic<size_t> bytes{0};
  void wait_for(size_t wanted) const noexcept {
    while (bytes.load(std::memory_order_acquire) < wanted) {
    }
  }
  void set(size_t value) noexcept { bytes.store(value, std::memory_order_release); }
};

struct Stream {
  size_t payload, ring, piece;
  bool by_lines;
  std::byte* memory;
  Position written = {}, read = {}, done = {};  // the last one counts payloads
};

void copy_lines(std::byte* to, const std::byte* from, size_t size) noexcept {
  struct Line {
    std::byte bytes[line_bytes];
  };
  for (; size >= sizeof(Line); size -= sizeof(Line), to += sizeof(Line), from += sizeof(Line)) {
    Line line;
    std::memcpy(&line, from, sizeof line);
    std::memcpy(to, &line, sizeof line);
  }
  std::memcpy(to, from, size);
}

void pin_to(int cpu) noexcept {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

// Each piece of a payload: where it lies in the payload, where in the ring, and its bytes.
template <class Pass>
void each_piece(const Stream& stream, size_t& position, Pass pass) {
  for (size_t at = 0; at < stream.payload;) {
    const size_t size = std::min({stream.piece, stream.payload - at, stream.ring - position % stream.ring});
    pass(at, stream.memory + position % stream.ring, size);
    position += size;
    at += size;
  }
}

void read_all(Stream& stream, size_t payloads) {
  pin_to(1);
  std::vector<std::byte> landing(stream.payload);
  size_t position = 0;
  for (size_t number = 1; number <= payloads; ++number) {
    each_piece(stream, position, [&](size_t at, const std::byte* from, size_t size) {
      stream.written.wait_for(position + size);
      if (stream.by_lines)
        copy_lines(landing.data() + at, from, size);
      else
        std::memcpy(landing.data() + at, from, size);
      stream.read.set(position + size);
    });
    stream.done.set(number);
  }
}

// Seconds for all but the first payloads, which warm the memory.
double write_all(Stream& stream, size_t payloads, size_t unmeasured) {
  pin_to(0);
  const std::vector<std::byte> source(stream.payload, std::byte{1});
  size_t position = 0;
  uint64_t begun_ns = 0;
  for (size_t number = 1; number <= payloads; ++number) {
    if (number == unmeasured + 1) begun_ns = tc::now_ns();
    each_piece(stream, position, [&](size_t at, std::byte* to, size_t size) {
      if (position + size > stream.ring) stream.read.wait_for(position + size - stream.ring);
      std::memcpy(to, source.data() + at, size);
      stream.written.set(position + size);
    });
    stream.done.wait_for(number);
  }
  return static_cast<double>(tc::now_ns() - begun_ns) / 1e9;
}

}  // namespace

int main(int count, char** arguments) {
  const auto size_in = [&](int place, size_t otherwise) {
    return count > place ? std::strtoull(arguments[place], nullptr, 10) : otherwise;
  };
  Stream stream{.payload = size_in(1, 1 << 20),
                .ring = size_in(2, 8 << 20),
                .piece = size_in(3, 16 << 10),
                .by_lines = count > 4 && std::string_view(arguments[4]) == "lines",
                .memory = nullptr};
  if (stream.payload == 0 || stream.ring == 0 || stream.piece == 0) return std::puts("a size of 0 bytes"), 2;
  void* const memory = mmap(nullptr, stream.ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::puts("no memory for the ring"), 1;
  stream.memory = static_cast<std::byte*>(memory);
  const auto payloads = std::max<size_t>(5, static_cast<size_t>(bytes_in_all / static_cast<double>(stream.payload)));
  const size_t unmeasured = payloads / 5;
  std::thread reader([&] { read_all(stream, payloads); });
  const double seconds = write_all(stream, payloads, unmeasured);
  reader.join();
  std::printf("%zu bytes through a ring of %zu in pieces of %zu: %.1f GB/s\n", stream.payload, stream.ring,
              stream.piece,
              static_cast<double>(payloads - unmeasured) * static_cast<double>(stream.payload) / seconds / 1e9);
}
