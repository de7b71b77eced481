// SPDX-License-Identifier: Apache-2.0
//
// The target half of a context: from a frame to running code. It knows nothing of UCX or of slots.
//
// Threads: any number may look up and run; learning new code takes turns. Nothing is evicted before the receiver goes,
// because threads of the application may run any of it at any time: code beyond the budget is refused instead.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "target/policy.h"
#include "ucp_ifunc/held_codes.h"

namespace tc::ucp {

// What code that arrives may link to, from the text of UCP_IFUNC_ALLOW: null, any installed library and any symbol of
// the process, as the papers' target did; else a list of libraries ("libz.so.1") and symbols, with commas.
void set_up_policy(target::Policy& policy, const char* allowed);

class Receiver {
 public:
  // Attack: a peer that sends ever new code until memory is full. Ten thousands of ifuncs fit.
  static constexpr size_t code_budget = 256u * 1024 * 1024;
  // Payloads up to this size are copied before the ifunc runs.
  static constexpr size_t copied_payload = 256;

  Receiver(const char* allowed, std::shared_ptr<spdlog::logger> log);

  // The code that a frame names; learns it when it comes along and is new. `payload` is where the frame's lies, with
  // the code behind it, of which nothing is believed: it is copied, then checked against its content id.
  // TC_ERR_NOT_FOUND: not held, and not along. Else the errors of wire::decode_code, Bundle::read_carried, CodeStore.
  Result<target::Code*> code_for(const wire::slot::Header& header, const std::byte* payload) {
    if (auto* const held = held_.find(header.id)) [[likely]]
      return held;
    return learn(header, payload);
  }

  // Runs it. TC_ERR_IFUNC when it called tc_fail(), with its words.
  Status run(target::Code& code, std::byte* payload, size_t size, void* target_args);

  // The code that was learned last under that name, as its bundle was sent. Null when there is none.
  const Bundle* bundle_named(const std::string& name);

  // For the application and ifuncs: more that code may call.
  target::Policy& policy() noexcept { return policy_; }

 private:
  Result<target::Code*> learn(const wire::slot::Header& header, const std::byte* payload);
  Result<target::Code*> load(Bundle bundle);

  const std::shared_ptr<spdlog::logger> log_;
  target::Policy policy_;
  HeldCodes held_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, target::Code*> by_name_;
  std::unique_ptr<target::CodeStore> store_;  // made when the first code comes
};

}  // namespace tc::ucp
