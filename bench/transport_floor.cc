// SPDX-License-Identifier: Apache-2.0
//
// What the transport alone costs: two pinned processes, 16-byte frames (header and 8 bytes), no ifuncs.
//
//     tc_transport_floor [WAY] [RUNS]     WAY: ring (default), am, put; UCX_TLS as in the environment
//
// Prints medians and spread of half a round trip, and of frames a second sent back to back.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "transport/test_node.h"

namespace {

using namespace tc;
using namespace tc::transport;

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

constexpr uint64_t frame = wire::encode(wire::Kind::call, 0, 1, 8);
constexpr uint64_t echo_me = wire::encode(wire::Kind::call, 0, 2, 8);

void send(TestNode& node, uint64_t header) {
  std::byte* at;
  while ((at = node.peer->out().reserve(8)) == nullptr) node.turn();
  *reinterpret_cast<uint64_t*>(at + 8) = 1;
  node.peer->out().commit(header);
}

// Takes what is there, up to `most` frames; returns how many of them want an answer.
unsigned take(TestNode& node, uint64_t& taken, unsigned most) {
  InStream& in = node.peer->in();
  unsigned answers = 0, count = 0;
  while (count < most) {
    const uint64_t word = in.peek();
    const wire::Header header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad) {
      if (!in.refill()) break;
      continue;
    }
    if (!in.fits(header.length)) std::abort();
    answers += header.number == 2 ? 1 : 0;
    in.advance(header.length);
    ++count;
  }
  taken += count;
  if (count != 0) in.release();
  return answers;
}

void serve(Way way, int to_parent) {
  pin(1);
  TestNode node(way);
  const std::string address = node.listen();
  if (write(to_parent, address.c_str(), address.size() + 1) < 0) _exit(1);
  uint64_t taken = 0;
  while (!node.lost) {
    if (!node.open()) {
      node.turn();
      continue;
    }
    for (unsigned answers = take(node, taken, 256); answers != 0; --answers) send(node, frame);
    node.turn();
  }
  _exit(0);
}

double median(std::vector<double>& values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const Way way = parse_way(argc > 1 ? argv[1] : "ring").value();
  const int runs = argc > 2 ? std::atoi(argv[2]) : 9;
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) serve(way, ends[1]);
  char address[128] = {};
  if (read(ends[0], address, sizeof address - 1) <= 0) return 1;
  pin(0);
  TestNode node(way);
  node.connect(address);
  if (!node.until([&] { return node.open() || node.lost || node.refused; }) || !node.open()) {
    std::fprintf(stderr, "no connection: %s\n",
                 node.refused ? node.refused->message.c_str()
                 : node.lost  ? node.lost->message.c_str()
                              : "timeout");
    return 1;
  }
  const bool fast = node.peer->way() == Way::ring;
  const int trips = fast ? 200000 : 20000;
  const uint64_t burst = fast ? 20'000'000 : 2'000'000;
  std::vector<double> latency, rate;
  uint64_t taken = 0;
  for (int run = 0; run < runs; ++run) {
    uint64_t begin = now_ns();
    for (int i = 0; i < trips; ++i) {
      send(node, echo_me);
      for (const uint64_t before = taken; taken == before; take(node, taken, 1))
        if (node.peer->in().peek() == 0) node.turn();
    }
    latency.push_back(static_cast<double>(now_ns() - begin) / trips / 2);
    begin = now_ns();
    for (uint64_t i = 0; i + 1 < burst; ++i) send(node, frame);
    send(node, echo_me);
    for (const uint64_t before = taken; taken == before; take(node, taken, 1)) node.turn();
    rate.push_back(static_cast<double>(burst) / static_cast<double>(now_ns() - begin) * 1e3);
  }
  const double l = median(latency), r = median(rate);
  std::printf("%s: half round trip %.1f ns (%.1f to %.1f), %.2f M frames/s (%.2f to %.2f), %d runs\n",
              std::string(way_name(way)).c_str(), l, latency.front(), latency.back(), r, rate.front(), rate.back(),
              runs);
  node.peer->close();
  return 0;
}
