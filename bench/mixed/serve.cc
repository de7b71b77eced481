// SPDX-License-Identifier: Apache-2.0
#include "mixed/serve.h"

#include <optional>
#include <string>

#include "base/clock.h"
#include "floor/raw_memory.h"
#include "mixed/am_target.h"
#include "mixed/node_client.h"

namespace tc::bench {

namespace {

constexpr std::array<std::string_view, mixed_modes.size()> names{"ifunc", "ifunc-threads", "am", "am-worker"};

constexpr uint32_t wait_ms = 10;  // how long the target may sleep before it looks at the flag
constexpr uint64_t serve_limit_ms = 300'000;

}  // namespace

std::string_view mode_name(MixedMode mode) noexcept { return names[static_cast<size_t>(mode)]; }

namespace {

// What the clients call.
class Target {
 public:
  static Result<std::unique_ptr<Target>> create(const BenchTransport& transport);
  std::string addresses() const {
    return fmt::format("{} {} {} {}", one_->address(), several_->address(), am_address_, flags_->address());
  }
  Status connect(const std::string& am_clients);
  void poll();
  Result<std::string> obey(const std::string& order, Talk& talk);

 private:
  Target() = default;
  Status serve(MixedMode mode);

  uint64_t counter_ = 0;                            // outlives the nodes
  std::optional<threechains::Node> one_, several_;  // with that many threads
  std::unique_ptr<AmTarget> am_;
  std::string am_address_;
  std::unique_ptr<RawMemory> flags_;
};

Result<std::unique_ptr<Target>> Target::create(const BenchTransport& transport) {
  std::unique_ptr<Target> target(new Target);
  TC_ASSIGN(target->one_, make_mixed_node(transport, 1, target->counter_));
  TC_ASSIGN(target->several_, make_mixed_node(transport, mixed_threads, target->counter_));
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
  for (const auto* const node : {&*one_, &*several_}) (void)tc_node_poll(node->handle(), nullptr);
  am_->poll();
}

// Serves these calls alone until the clients' process says by a flag that it is done. All modes wait by the same policy.
Status Target::serve(MixedMode mode) {
  constexpr uint64_t waits_between_clocks = 256;
  auto& flags = flags_->flags();
  const auto wanted = flags.count() + 1;
  const auto deadline = Deadline::after_ms(serve_limit_ms);
  for (uint64_t waits = 1; flags.count() < wanted; ++waits) {
    switch (mode) {
      case MixedMode::ifunc: (void)tc_node_wait(one_->handle(), wait_ms, nullptr); break;
      case MixedMode::ifunc_threads: (void)tc_node_wait(several_->handle(), wait_ms, nullptr); break;
      case MixedMode::am:
      case MixedMode::am_worker: am_->wait(wait_ms); break;
    }
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
    for (auto* const node : {&*one_, &*several_}) TC_CHECK(wait_until_tuned(*node));
    return "tuned";
  }
  TC_CHECK(talk.say("go"));
  TC_ASSIGN(const auto mode, value_named<MixedMode>(names, word));
  TC_CHECK(serve(mode));
  return "done";
}

}  // namespace

Status serve_mixed(const Arguments& arguments, Talk& talk) {
  TC_ASSIGN(const auto transport, BenchTransport::parse(arguments.at("transport")));
  TC_ASSIGN(const auto target, Target::create(transport));
  const auto meanwhile = [&] { target->poll(); };
  TC_ASSIGN(const auto am_clients, talk.ask(target->addresses(), meanwhile));
  TC_CHECK(target->connect(am_clients));
  TC_CHECK(talk.say("connected"));
  return talk.serve([&](const std::string& order) { return target->obey(order, talk); }, meanwhile);
}

}  // namespace tc::bench
