// SPDX-License-Identifier: Apache-2.0
//
// A process that connects to a node over and over: with whole handshakes of a trusted peer, or with halves of a stranger.
#include <sstream>
#include <thread>

#include "common/node.h"
#include "common/talk.h"
#include "trust_cost/client_hello.h"
#include "trust_cost/trust_bench.h"

namespace tc::bench {

namespace {

constexpr int connecting_threads = 4, flooding_threads = 8;

// Runs `work` on so many threads; the first error.
template <class Work>
Status on_threads(int count, const Work& work) {
  std::vector<Status> results(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = work(); });
  for (auto& thread : threads) thread.join();
  for (auto& result : results)
    if (!result) return result;
  return {};
}

Result<std::string> connect_for(const std::string& address, uint64_t ms) {
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  std::atomic<uint64_t> connections{0}, spent_ns{0};
  TC_CHECK(on_threads(connecting_threads, [&]() -> Status {
    TC_ASSIGN(auto node, make_node(transport, {{"log", "off"}, {"listen", "none"}}));
    const auto started = now_ns();
    const auto deadline = Deadline::after_ms(ms);
    while (!deadline.passed()) {
      TC_CHECK(attempt([&] { node.connect(address, connect_limit).abandon(); }));
      ++connections;
    }
    spent_ns += now_ns() - started;
    return {};
  }));
  const auto seconds = static_cast<double>(spent_ns.load()) / 1e9 / connecting_threads;
  return fmt::format("{} {}", connections.load(), static_cast<double>(connections.load()) / seconds);
}

Result<std::string> flood_for(const std::string& address, ByteView hello, uint64_t ms) {
  FloodCounts counts;
  const auto started = now_ns();
  const auto deadline = Deadline::after_ms(ms);
  TC_CHECK(on_threads(flooding_threads, [&] { return flood(address, hello, deadline, counts); }));
  const auto seconds = static_cast<double>(now_ns() - started) / 1e9;
  return fmt::format("{} {}", counts.answered.load(), static_cast<double>(counts.answered.load()) / seconds);
}

Status serve(Talk& talk) {
  TC_ASSIGN(const auto hello, record_client_hello());
  TC_CHECK(talk.say("ready"));
  while (true) {
    TC_ASSIGN(const auto order, talk.hear(Deadline::after_ms(600'000)));
    if (order == "end") return {};
    std::string verb, address;
    uint64_t ms = 0;
    std::istringstream(order) >> verb >> address >> ms;
    TC_CHECK(talk.say("go"));
    const auto answer = verb == "connect" ? connect_for(address, ms) : flood_for(address, hello, ms);
    TC_CHECK(talk.say(answer ? *answer : "error " + answer.error().message));
  }
}

}  // namespace

int run_trust_flood() {
  return run_as_partner([](Talk& talk) { return serve(talk); });
}

}  // namespace tc::bench
