// SPDX-License-Identifier: Apache-2.0
//
// What a running ifunc asks of its node: named data, replies, and calls to other nodes. One for each node; the call that runs
// is target::Executor::running(). Calls that run on other threads have a Worker in its place.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <string>

#include "node/call_effects.h"
#include "node/named_data.h"

namespace tc::node {

class Invocation final : public target::IfuncHost {
 public:
  Invocation(const Common& common, target::Executor& executor, CallEffects& effects, LocalCalls& local,
             Authority& authority)
      : common_(common), executor_(executor), effects_(effects), local_(local), authority_(authority) {}

  CallEffects& effects() noexcept { return effects_; }

  // Once the node's number is known.
  void begin() noexcept { be_node(common_.self.id, common_.self.count()); }
  // Gives ifuncs data by name; null withdraws it.
  void expose(std::string name, void* data, size_t size, SharedFile file);
  // All of it, as it is now.
  std::shared_ptr<const NamedData> exposed() const noexcept { return data_; }
  // May the call that asks have that data? Logs a refusal.
  bool may_touch(const CallEffects::Asker& asker, std::string_view data) noexcept;

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
  const trust::SharedRights& running_rights() const;
  CallEffects::Asker running() const;

  const Common& common_;
  target::Executor& executor_;
  CallEffects& effects_;
  LocalCalls& local_;
  Authority& authority_;
  std::shared_ptr<const NamedData> data_ = std::make_shared<const NamedData>();
};

}  // namespace tc::node
