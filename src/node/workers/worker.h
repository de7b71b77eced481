// SPDX-License-Identifier: Apache-2.0
//
// One thread that runs calls that were handed over, and what such a call may ask of its node.
//
// The parts of a node belong to the node's thread. So what an ifunc asks is done here where nothing of them is needed; else the
// node's thread is asked, and the call waits until that has polled. Only an answer leaves without such a wait.
//
// Thread: its own, but for what says otherwise.
#pragma once

#include <condition_variable>
#include <mutex>

#include "node/workers/handed_call.h"

namespace tc::node {

class Workers;

// What the node's thread is asked to do for a call.
struct Ask {
  enum class Kind : uint8_t { forward, forward_as, inject, touch /* may it have the data of that name? */ };
  Kind kind;
  HandedCall& handed;
  target::Call& call;  // as it is now; the node's thread may change it
  uint32_t node = 0;
  std::string_view name = {};
  ByteView payload = {};
  tc_status_t status = TC_ERR_INTERNAL;
  bool is_done = false;
};

class Worker final : public target::IfuncHost {
 public:
  Worker(Workers& workers, const target::IfuncHost& chief, const Common& common)
      : IfuncHost(chief), workers_(workers), common_(common) {}

  // The node's thread, before the first call: which node this is.
  void begin() noexcept { be_node(common_.self.id, common_.self.count()); }
  // Runs the call, and says in it how it ended.
  void run(HandedCall& handed) noexcept;
  // The node's thread: what was asked is done.
  void on_done(Ask& ask) noexcept;
  // Any thread: what it runs (Executor::moment).
  target::Executor& executor() noexcept { return executor_; }

  // ---- target::IfuncHost
  void* data(std::string_view name, size_t* size) noexcept override;
  tc_status_t reply(ByteView bytes) noexcept override;
  tc_status_t forward(uint32_t node, ByteView payload) noexcept override;
  tc_status_t forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  tc_status_t inject(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  void fail(int32_t code, std::string_view message) noexcept override;
  void log(int level, std::string_view message) noexcept override;
  InProgress in_progress() const noexcept override;

 private:
  tc_status_t ask(Ask ask) noexcept;

  Workers& workers_;
  const Common& common_;
  target::Executor executor_{*this};
  HandedCall* handed_ = nullptr;  // that runs
  std::mutex mutex_;              // of Ask::is_done
  std::condition_variable done_;
};

}  // namespace tc::node
