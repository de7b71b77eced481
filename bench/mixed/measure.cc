// SPDX-License-Identifier: Apache-2.0
#include "mixed/measure.h"

#include <algorithm>

#include "base/clock.h"

namespace tc::bench {

namespace {

constexpr size_t most_small_calls = 200'000;  // of one phase
constexpr uint32_t wait_ms = 5;               // the first client's queue is filled so often while the second one waits
constexpr uint64_t answer_limit_ms = 60'000;

double us_since(uint64_t started) { return static_cast<double>(now_ns() - started) / 1000; }

template <class By>
Status wait_until_count(By& by, uint64_t wanted) {
  const auto deadline = Deadline::after_ms(answer_limit_ms);
  while (by.count() < wanted) {
    by.wait(wait_ms);
    TC_CHECK(by.status());
    if (deadline.passed())
      return fail(TC_ERR_TIMEOUT, "{} of {} answers came within {} ms", by.count(), wanted, answer_limit_ms);
  }
  return {};
}

// Each answer has its own deadline.
Status wait_for_all(MixedClient& client) {
  while (client.in_flight() > 0) TC_CHECK(wait_until_count(client, client.count() + 1));
  return {};
}

// The second client's answers: meanwhile the first client keeps its queue full.
struct BesideQueue {
  MixedClients& clients;
  uint32_t queue;
  void wait(uint32_t ms) {
    fill();
    clients.second->wait(ms);
  }
  void fill() {
    clients.first->poll();
    while (clients.first->in_flight() < queue) clients.first->call_long();
  }
  uint64_t count() const { return clients.second->count(); }
  Status status() const {
    TC_CHECK(clients.first->status());
    return clients.second->status();
  }
};

}  // namespace

Result<QueueTimes> measure_queue(MixedClient& client, uint32_t calls) {
  QueueTimes times;
  const auto before = client.count();
  const auto started = now_ns();
  for (uint32_t i = 0; i < calls; ++i) client.call_long();
  for (uint32_t i = 1; i <= calls; ++i) {
    TC_CHECK(wait_until_count(client, before + i));
    const auto us = us_since(started);
    if (i == 1)
      times.first_us = us;
    else
      times.largest_gap_us = std::max(times.largest_gap_us, us - times.last_us);
    times.last_us = us;
  }
  return times;
}

Result<std::vector<double>> measure_small_calls(MixedClients& clients, uint32_t queue, uint32_t phase_ms) {
  BesideQueue beside{clients, queue};
  beside.fill();
  std::vector<double> us;
  const auto deadline = Deadline::after_ms(phase_ms);
  while (us.empty() || (!deadline.passed() && us.size() < most_small_calls)) {
    const auto started = now_ns();
    clients.second->call_small();
    TC_CHECK(wait_until_count(beside, clients.second->called()));
    us.push_back(us_since(started));
  }
  TC_CHECK(wait_for_all(*clients.first));
  return us;
}

}  // namespace tc::bench
