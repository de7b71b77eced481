// SPDX-License-Identifier: Apache-2.0
//
// The other process of the transports' tests. Listens, prints its address, and sends every frame of its one peer back;
// sleeps when there is nothing to do. Ends when the peer is gone.
//
//     transport_echo_peer KIND [ADDRESS [SPIN_US]]
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "transport/testing/test_node.h"

int main(int argc, char** argv) {
  using namespace tc::transport;
  if (argc < 2) return 2;
  const auto* const kind = std::ranges::find(kinds, std::string_view(argv[1]), &Kind::name);
  if (kind == std::end(kinds)) return 2;
  const uint64_t spin_ns = argc > 3 ? std::strtoull(argv[3], nullptr, 10) * 1000 : 100'000;
  TestNode node(*kind);
  std::printf("%s\n", node.listen(argc > 2 ? argv[2] : "127.0.0.1:0").c_str());
  std::fflush(stdout);
  uint32_t next = 0;
  uint64_t busy_until = 0;
  while (!node.lost) {
    node.poll();
    bool worked = false;
    while (node.is_open()) {
      auto& in = node.in();
      const uint64_t word = in.peek();
      const tc::wire::FrameHeader header = tc::wire::decode(word);
      if (word == 0 || header.kind == tc::wire::Kind::pad || !in.fits(header.length)) {
        if (!in.refill()) break;
        continue;
      }
      // Room first: a frame is only taken when its echo can be sent.
      if (node.out().reserve(header.length) == nullptr) break;
      if (take_frame(in, next) != Took::frame) return 4;
      if (!put_frame(node.out(), next++, header.length)) return 5;
      worked = true;
    }
    if (node.is_open() && node.in().broken()) return 4;
    if (node.is_open()) node.in().release();
    if (worked) busy_until = tc::now_ns() + spin_ns;
    if (!worked && !node.lost && tc::now_ns() > busy_until) node.sleep(1000);
  }
  return 0;
}
