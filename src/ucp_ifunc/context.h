// SPDX-License-Identifier: Apache-2.0
//
// What belongs to one ucp_context_h, and the table in which it is found. The API hands us nothing of our own but that
// context, and UCX keeps nothing for us, so this table is the one global that it forces on us.
//
// Threads: any. A state stays until ucp_ifunc_release(), which must not run beside other calls for that context.
#pragma once

#include <threechains/ucp_ifunc.h>

#include <functional>
#include <map>
#include <thread>

#include "ucp_ifunc/am_buffers.h"
#include "ucp_ifunc/ifunc.h"
#include "ucp_ifunc/receiver.h"
#include "ucp_ifunc/slot_memory.h"

namespace tc::ucp {

class ContextState;

// One ucp_ifunc_am_register().
struct AmReceiver {
  ContextState* state;
  ucp_worker_h worker;
  void* target_args;
  AmBuffers buffers{};
};

class ContextState {
 public:
  ContextState();

  // `make` gives the bundle when the name is not registered yet.
  using Source = std::function<Result<Bundle>()>;
  Result<Ifunc*> add(const std::string& name, bool bitcode, const Source& make);
  void remove(Ifunc& ifunc);
  void forget(ucp_ep_h ep);

  void note_worker(ucp_worker_h worker);
  void forget_worker(ucp_worker_h worker);
  // Those that this thread created: the others' workers may be for their threads alone.
  void progress_own_workers();

  AmReceiver* add_am_receiver(ucp_worker_h worker, void* target_args);

  // A frame that could not be run, for the log. Not each of a flood.
  void report(const Error& error) noexcept;

  Receiver receiver;
  SlotMemory slots;

 private:
  explicit ContextState(std::shared_ptr<spdlog::logger> log);

  const std::shared_ptr<spdlog::logger> log_;
  std::atomic<uint64_t> failures_{0};
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<Ifunc>> ifuncs_;
  std::vector<std::weak_ptr<Ifunc>> deregistered_;  // messages may still hold them
  std::vector<std::pair<ucp_worker_h, std::thread::id>> workers_;
  std::vector<std::unique_ptr<AmReceiver>> am_receivers_;
};

// The state of a context; made when it is first asked for. After the first call in a thread it costs a comparison.
ContextState& state_of(ucp_context_h context);
void release_state(ucp_context_h context);
// Calls `visit` for each state that there is.
void for_each_state(const std::function<void(ContextState&)>& visit);
// A number for a frame: another one than the frames before it had.
uint32_t next_nonce() noexcept;

}  // namespace tc::ucp
