// SPDX-License-Identifier: Apache-2.0
//
// The other process of the UCX tests. Listens, prints its address, and sends every frame of its one peer back;
// sleeps when there is nothing to do. Ends when the peer is gone.
//
//     ucx_test_peer WAY [SPIN_US]
#include <cstdio>
#include <cstdlib>

#include "transport/test_node.h"

int main(int argc, char** argv) {
  using namespace tc::transport;
  if (argc < 2) return 2;
  const uint64_t spin_ns = argc > 2 ? std::strtoull(argv[2], nullptr, 10) * 1000 : 100'000;
  TestNode node(parse_way(argv[1]).value());
  std::printf("%s\n", node.listen().c_str());
  std::fflush(stdout);
  uint32_t next = 0;
  uint64_t busy_until = 0;
  while (!node.lost) {
    node.turn();
    if (node.refused) return 3;
    bool worked = false;
    while (node.open()) {
      const uint64_t word = node.peer->in().peek();
      const tc::wire::Header header = tc::wire::decode(word);
      if (word == 0 || header.kind == tc::wire::Kind::pad) {
        if (!node.peer->in().refill()) break;
        continue;
      }
      // Room first: a frame is only taken when its echo can be sent.
      if (node.peer->out().reserve(header.length) == nullptr) break;
      if (take_frame(node.peer->in(), next) != Took::frame) return 4;
      if (!put_frame(node.peer->out(), next++, header.length)) return 5;
      worked = true;
    }
    if (node.open() && node.peer->in().broken()) return 4;
    if (node.open()) node.peer->in().release();
    if (worked) busy_until = tc::now_ns() + spin_ns;
    if (!worked && !node.lost && tc::now_ns() > busy_until) node.sleep(1000);
  }
  return node.credit_is_plausible ? 0 : 6;
}
