// SPDX-License-Identifier: Apache-2.0
//
// A node that is called, and connected to.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/node.h"
#include "common/talk.h"
#include "trust_cost/trust_bench.h"

namespace tc::bench {

namespace {

constexpr uint64_t order_ms = 600'000;
constexpr threechains::milliseconds wait_limit{2};

// CPU time of all threads but the one that polls.
uint64_t cpu_ns_of_other_threads() {
  uint64_t sum = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    uint64_t ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    sum += ns;
  }
  return sum;
}

Result<std::string> obey(threechains::Node& node, const std::string& order) {
  if (order == "cpu") return fmt::format("{}", cpu_ns_of_other_threads());
  return attempt([&] { return fmt::format("{}", node.stat(order.c_str())); });
}

Status serve(const std::string& keyring, Talk& talk) {
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  TC_ASSIGN(auto node,
            make_node(transport, {{"name", "target"}, {"warm-up", "on"}, {"log", "off"}, {"keyring", keyring}}));
  uint64_t counter = 0;
  node.set_target_args(&counter);
  TC_CHECK(talk.say("ready " + node.address()));
  const auto meanwhile = [&] { (void)tc_node_wait(node.handle(), static_cast<uint32_t>(wait_limit.count()), nullptr); };
  while (true) {
    TC_ASSIGN(const auto order, talk.hear(Deadline::after_ms(order_ms), meanwhile));
    if (order == "end") return {};
    const auto answer = obey(node, order);
    TC_CHECK(talk.say(answer ? *answer : "error " + answer.error().message));
  }
}

}  // namespace

int run_trust_target(const std::string& keyring) {
  return run_as_partner([&](Talk& talk) { return serve(keyring, talk); });
}

}  // namespace tc::bench
