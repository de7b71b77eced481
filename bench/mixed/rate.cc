// SPDX-License-Identifier: Apache-2.0
#include "mixed/rate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "common/ping.h"
#include "mixed/burn.h"

namespace tc::bench {

namespace {

constexpr unsigned sleep_us = 500;
constexpr uint64_t answers_limit_ms = 60'000;

double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

Result<Rate> measure_rate(std::span<MixedClient* const> clients, uint32_t window, uint32_t phase_ms) {
  uint64_t before = 0, after = 0;
  for (const auto* const client : clients) before += client->count();
  const auto cpu_before = cpu_s();
  const auto started = now_ns();
  const auto phase = Deadline::after_ms(phase_ms), limit = Deadline::after_ms(phase_ms + answers_limit_ms);
  for (bool goes_on = true; goes_on;) {
    const bool calls = !phase.passed();
    for (auto* const client : clients) {
      client->poll();
      TC_CHECK(client->status());
      while (calls && client->in_flight() < window) client->call_long();
    }
    goes_on = std::ranges::any_of(clients, [](const auto* client) { return client->in_flight() > 0; });
    if (limit.passed()) return fail(TC_ERR_TIMEOUT, "calls have no answer after {} ms", answers_limit_ms);
    if (goes_on) ::usleep(sleep_us);
  }
  const auto ns = now_ns() - started;
  for (const auto* const client : clients) after += client->count();
  return Rate{per_second(after - before, ns), (cpu_s() - cpu_before) * 1e9 / static_cast<double>(ns)};
}

double rate_without_calls(const BurnWork& work, uint32_t threads, uint32_t phase_ms) {
  std::atomic<uint64_t> done{0};
  const auto started = now_ns();
  const auto deadline = Deadline::after_ms(phase_ms);
  {
    std::vector<std::jthread> running;
    for (uint32_t i = 0; i < threads; ++i)
      running.emplace_back([&] {
        do {
          const auto result = burn(work.rounds);
          asm volatile("" : : "r"(result));
          done.fetch_add(1, std::memory_order_relaxed);
        } while (!deadline.passed());
      });
  }
  return per_second(done, now_ns() - started);
}

}  // namespace tc::bench
