// SPDX-License-Identifier: Apache-2.0
//
// The target half of a context: from a frame to running code. It knows nothing of UCX or of slots.
//
// Threads: any number may look up and run; learning new code takes turns. Nothing is evicted before the receiver goes,
// because threads of the application may run any of it at any time: code beyond the budget is refused instead. What goes
// is a library when a newer version comes, and the code that was linked to it: once its last call has ended
// (executions.h). So libraries are never among what is looked up without a lock; their code comes with each frame.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "target/code_store.h"
#include "target/policy.h"
#include "ucp_ifunc/executions.h"
#include "ucp_ifunc/held_codes.h"

namespace tc::ucp {

// What code that arrives may link to, from the text of UCP_IFUNC_ALLOW: null, any installed library and any symbol of
// the process, as the papers' target did; else a list of libraries ("libz.so.1") and symbols, with commas.
void set_up_policy(target::Policy& policy, const char* allowed);
// What libraries that arrive may export, from the text of UCP_IFUNC_ALLOW_EXPORT: null, nothing; else rules as
// Policy::allow_export has them, but for hosts, with commas. TC_ERR_INVALID names the first that is none; those before it
// hold.
Status set_up_exports(target::Policy& policy, const char* rules);

class Receiver {
 public:
  // Attack: a peer that sends ever new code until memory is full. Ten thousands of ifuncs fit.
  static constexpr size_t code_budget = 256u * 1024 * 1024;
  // Payloads up to this size are copied before the ifunc runs.
  static constexpr size_t copied_payload = 256;

  Receiver(const char* allowed, std::shared_ptr<spdlog::logger> log);

  // While it lives, code that may go stays. Begun by code_for() for a library that is to be run, and by run().
  class Use {
   public:
    Use() = default;
    ~Use() {
      if (receiver_ != nullptr) receiver_->end_use(phase_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    void begin(Receiver& receiver) noexcept {
      if (receiver_ != nullptr) return;
      receiver_ = &receiver;
      phase_ = receiver.executions_.enter();
    }

   private:
    Receiver* receiver_ = nullptr;
    unsigned phase_ = 0;
  };

  // The code that a frame names; learns it when it comes along and is new. `payload` is where the frame's lies, with
  // the code behind it, of which nothing is believed: it is copied, then checked against its content id.
  // TC_ERR_NOT_FOUND: not held, and not along. Else the errors of wire::decode_code, Bundle::read_carried, CodeStore.
  // The code stays as long as `use`, which the caller keeps until run() has returned.
  Result<target::Code*> code_for(const slot::Header& header, const std::byte* payload, Use& use) {
    if (auto* const held = held_.find(header.id)) [[likely]]
      return held;
    auto learned = learn(header, payload, use);
    free_left();
    return learned;
  }

  // Runs it. TC_ERR_IFUNC when it called tc_fail(), with its words.
  Status run(target::Code& code, std::byte* payload, size_t size, void* target_args);

  // The code that was learned last under that name, as its bundle was sent. Nothing when there is none.
  std::optional<Bundle> bundle_named(const std::string& name);
  target::CodeStoreStats stats();

  // For the application and ifuncs: more that code may call.
  target::Policy& policy() noexcept { return policy_; }

 private:
  Result<target::Code*> learn(const slot::Header& header, const std::byte* payload, Use& use);
  Result<target::Code*> load(Bundle bundle);
  void forget(const target::Code& code);
  void end_use(unsigned phase) noexcept {
    executions_.leave(phase);
    free_left();
  }
  // Frees replaced code whose last call has ended. Never waits: the holder of the lock calls this after it has released the lock.
  void free_left() noexcept {
    if (executions_.is_over()) [[unlikely]]
      free_left_now();
  }
  void free_left_now() noexcept;
  // The store's, and then frees the replaced code that no call is inside of. With the lock.
  void housekeeping() noexcept;

  const std::shared_ptr<spdlog::logger> log_;
  target::Policy policy_;
  Executions executions_;
  HeldCodes held_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, target::Code*> by_name_;
  std::unique_ptr<target::CodeStore> store_;  // made when the first code comes
  size_t awaited_ = 0;                        // pieces of replaced code whose last call `executions_` waits for
};

}  // namespace tc::ucp
