// SPDX-License-Identifier: Apache-2.0
#include "tsi/cell_calls.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "common/embedded.h"
#include "common/ping.h"
#include "wire/bundle.h"

TC_EMBED(numbered_ifunc, TC_NUMBERED_IFUNC)

namespace tc::bench {

namespace {

// Bitcode would be compiled again while it is measured.
NodeSettings settings(const char* isolate) {
  return {{"warm-up", "on"}, {"log", "error"}, {"tune", "off"}, {"isolate", isolate}};
}

}  // namespace

Result<std::unique_ptr<CellCalls>> CellCalls::create(const BenchTransport& transport, const Placement& placement) {
  pin_to_cpu(placement.cpus[1]);  // what starts from here on stays there: at the latest with the first call, the cell
  auto calls = create_here(transport);
  pin_to_cpu(placement.cpus[0]);
  return calls;
}

Result<std::unique_ptr<CellCalls>> CellCalls::create_here(const BenchTransport& transport) {
  TC_ASSIGN(auto caller, make_node(transport, settings("none")));
  TC_ASSIGN(auto in_process, make_node(transport, settings("none")));
  TC_ASSIGN(auto isolated, make_node(transport, settings("all")));
  std::unique_ptr<CellCalls> calls(new CellCalls(std::move(caller), std::move(in_process), std::move(isolated)));
  TC_CHECK(attempt("registering code", [&] {
    calls->ifunc_ = calls->caller_.load(numbered_ifunc());
    calls->message_ = calls->ifunc_->message(char{1});
  }));
  for (auto* const target : {&calls->in_process_, &calls->isolated_}) {
    TC_CHECK(calls->connect(*target));
    TC_CHECK(calls->call(*target));
  }
  return calls;
}

CellCalls::~CellCalls() {
  for (auto* const target : {&in_process_, &isolated_})
    if (target->endpoint) target->endpoint->abandon();
}

Status CellCalls::connect(Target& target) {
  std::atomic connected = false;
  Status drove;
  std::jthread drives([&] {
    while (!connected && drove) drove = attempt([&] { target.node.wait(threechains::milliseconds(10)); });
  });
  auto made = bench::connect(caller_, target.node.address(), false);
  connected = true;
  drives.join();
  TC_CHECK(drove);
  if (!made) return fail(made.error());
  target.endpoint = std::move(*made);
  return {};
}

Status CellCalls::call(Target& target) {
  tc_future_t* future = nullptr;
  if (const auto status = tc_endpoint_call(target.endpoint->handle(), message_->handle(), 0, &future); status != TC_OK)
    return fail(status, "{}", tc_error_message());
  const std::unique_ptr<tc_future_t, decltype(&tc_future_free)> owner(future, tc_future_free);
  constexpr uint64_t polls_between_checks = 1u << 16;
  const auto deadline = Deadline::after_ms(ping_limit_ms);
  for (uint64_t polls = 1; tc_future_ready(future) == 0; ++polls) {
    (void)tc_node_poll(target.node.handle(), nullptr);
    (void)tc_node_poll(caller_.handle(), nullptr);
    if (polls % polls_between_checks == 0 && deadline.passed())
      return fail(TC_ERR_TIMEOUT, "no answer within {} ms", ping_limit_ms);
  }
  if (const auto status = tc_future_status(future); status != TC_OK) return fail(status, "{}", tc_future_error(future));
  size_t size = 0;
  const void* const bytes = tc_future_bytes(future, &size);
  uint64_t answer = 0;
  if (size == sizeof answer) std::memcpy(&answer, bytes, sizeof answer);
  if (answer != ++target.answers) return fail(TC_ERR_INTERNAL, "call {} was answered as {}", target.answers, answer);
  return {};
}

Result<double> CellCalls::latency(Where where, uint64_t calls) {
  auto& target = where == Where::cell ? isolated_ : in_process_;
  const auto started = now_ns();
  for (uint64_t i = 0; i < calls; ++i) TC_CHECK(call(target));
  return static_cast<double>(now_ns() - started) / static_cast<double>(calls);
}

}  // namespace tc::bench
