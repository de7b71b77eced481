// SPDX-License-Identifier: Apache-2.0
#include "mixed/measure.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/ping.h"
#include "floor/raw_memory.h"
#include "mixed/am_target.h"
#include "mixed/node_client.h"

namespace tc::bench {

namespace {

constexpr std::array<std::string_view, mixed_modes.size()> names{"ifunc", "am", "am-worker"};

constexpr size_t most_small_calls = 200'000;  // of one phase
constexpr uint32_t wait_ms = 10;              // how long the target may sleep before it looks at the flag
constexpr uint64_t serve_limit_ms = 300'000;

double us_since(uint64_t started) { return static_cast<double>(now_ns() - started) / 1000; }

// Each answer has its own deadline.
Status wait_for_all(MixedClient& client) {
  while (client.in_flight() > 0) TC_CHECK(poll_until_count(client, client.count() + 1));
  return {};
}

// The second client's answers, for poll_until_count(): meanwhile the first client keeps its queue full.
struct BesideQueue {
  MixedClients& clients;
  uint32_t queue;
  void poll() {
    clients.poll();
    while (clients.first->in_flight() < queue) clients.first->call_long();
  }
  uint64_t count() const { return clients.second->count(); }
  Status status() const {
    TC_CHECK(clients.first->status());
    return clients.second->status();
  }
};

}  // namespace

std::string_view mode_name(MixedMode mode) noexcept { return names[static_cast<size_t>(mode)]; }

Result<QueueTimes> measure_queue(MixedClient& client, uint32_t calls) {
  QueueTimes times;
  const auto before = client.count();
  const auto started = now_ns();
  for (uint32_t i = 0; i < calls; ++i) client.call_long();
  for (uint32_t i = 1; i <= calls; ++i) {
    TC_CHECK(poll_until_count(client, before + i));
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
  beside.poll();
  std::vector<double> us;
  const auto deadline = Deadline::after_ms(phase_ms);
  while (us.empty() || (!deadline.passed() && us.size() < most_small_calls)) {
    const auto started = now_ns();
    clients.second->call_small();
    TC_CHECK(poll_until_count(beside, clients.second->called()));
    us.push_back(us_since(started));
  }
  TC_CHECK(wait_for_all(*clients.first));
  return us;
}

namespace {

// What the clients call.
class Target {
 public:
  static Result<std::unique_ptr<Target>> create(const BenchTransport& transport);
  std::string addresses() const { return fmt::format("{} {} {}", node_->address(), am_address_, flags_->address()); }
  Status connect(const std::string& am_clients);
  void poll();
  Result<std::string> obey(const std::string& order, Talk& talk);

 private:
  Target() = default;
  Status serve(MixedMode mode);

  uint64_t counter_ = 0;  // outlives the node
  std::optional<threechains::Node> node_;
  std::unique_ptr<AmTarget> am_;
  std::string am_address_;
  std::unique_ptr<RawMemory> flags_;
};

Result<std::unique_ptr<Target>> Target::create(const BenchTransport& transport) {
  std::unique_ptr<Target> target(new Target);
  TC_ASSIGN(target->node_, make_mixed_node(transport, target->counter_));
  TC_ASSIGN(target->am_, AmTarget::create(transport.ucx_tls));
  TC_ASSIGN(target->am_address_, target->am_->address());
  TC_ASSIGN(target->flags_, RawMemory::create());
  return target;
}

Status Target::connect(const std::string& am_clients) {
  std::array<std::string, 4> addresses;
  if (!read_words(am_clients, addresses[0], addresses[1], addresses[2], addresses[3]))
    return fail(TC_ERR_INTERNAL, "the clients said '{}' when four addresses were due", am_clients);
  return am_->connect(addresses);
}

void Target::poll() {
  (void)tc_node_poll(node_->handle(), nullptr);
  am_->poll();
}

// Serves these calls alone until the clients' process says by a flag that it is done. All modes wait by the same policy.
Status Target::serve(MixedMode mode) {
  constexpr uint64_t waits_between_clocks = 256;
  auto& flags = flags_->flags();
  const auto wanted = flags.count() + 1;
  const auto deadline = Deadline::after_ms(serve_limit_ms);
  for (uint64_t waits = 1; flags.count() < wanted; ++waits) {
    if (mode == MixedMode::ifunc)
      (void)tc_node_wait(node_->handle(), wait_ms, nullptr);
    else
      am_->wait(wait_ms);
    TC_CHECK(am_->status());
    flags.poll();
    if (waits % waits_between_clocks == 0 && deadline.passed())
      return fail(TC_ERR_TIMEOUT, "the clients have not said within {} ms that they are done", serve_limit_ms);
  }
  return {};
}

Result<std::string> Target::obey(const std::string& order, Talk& talk) {
  std::string verb, word;
  read_words(order, verb, word);
  if (verb == "tune") {
    TC_CHECK(wait_until_tuned(*node_));
    return "tuned";
  }
  TC_CHECK(talk.say("go"));
  if (verb == "flags") {
    TC_CHECK(pong(flags_->flags(), std::stoull(word)));
  } else {
    TC_ASSIGN(const auto mode, value_named<MixedMode>(names, word));
    TC_CHECK(serve(mode));
  }
  return "done";
}

}  // namespace

Status serve_mixed(const Arguments& arguments, Talk& talk) {
  pin_to(1);
  TC_ASSIGN(const auto transport, BenchTransport::parse(arguments.at("transport")));
  TC_ASSIGN(const auto target, Target::create(transport));
  const auto meanwhile = [&] { target->poll(); };
  TC_ASSIGN(const auto am_clients, talk.ask(target->addresses(), meanwhile));
  TC_CHECK(target->connect(am_clients));
  TC_CHECK(talk.say("connected"));
  return talk.serve([&](const std::string& order) { return target->obey(order, talk); }, meanwhile);
}

}  // namespace tc::bench
