// SPDX-License-Identifier: Apache-2.0
//
// What a running ifunc asks of its node: named data, replies, and calls to other nodes. One for each node; the call that runs
// is target::Executor::running().
//
// Thread: the node's.
#pragma once

#include <string>
#include <vector>

#include "node/local_calls.h"

namespace tc::node {

class Invocation final : public target::IfuncHost {
 public:
  Invocation(const Common& common, target::Executor& executor, Answers& answers, Links& links, LocalCalls& local,
             Codes& codes, Authority& authority)
      : common_(common),
        executor_(executor),
        answers_(answers),
        links_(links),
        local_(local),
        codes_(codes),
        authority_(authority) {}

  // Once the node's number is known.
  void begin() noexcept { be_node(common_.self.id, common_.self.count()); }
  // Gives ifuncs data by name; null withdraws it.
  void expose(std::string name, void* data, size_t size);

  // ---- target::IfuncHost
  void* data(std::string_view name, size_t* size) noexcept override;
  tc_status_t reply(ByteView bytes) noexcept override;
  tc_status_t forward(uint32_t node, ByteView payload) noexcept override;
  tc_status_t forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  tc_status_t inject(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  void fail(int32_t code, std::string_view message) noexcept override;
  void log(int level, std::string_view message) noexcept override;

 private:
  const trust::SharedRights& running_rights() const;
  bool may_touch(const trust::CodeRights& rights, std::string_view data) noexcept;
  tc_status_t send(uint32_t node, OutgoingCall call);
  tc_status_t forward_call(uint32_t node, OutgoingCall call);
  tc_status_t inject_call(uint32_t node, std::string_view name, ByteView payload);
  wire::CallHeader header_of(const target::Call& call) const noexcept;
  wire::ReturnAddress caller_of(const target::Call& call) const;

  struct Exposed {
    std::string name;
    void* data;
    size_t size;
  };

  const Common& common_;
  target::Executor& executor_;
  Answers& answers_;
  Links& links_;
  LocalCalls& local_;
  Codes& codes_;
  Authority& authority_;
  std::vector<Exposed> exposed_;  // few: found by looking at each
};

}  // namespace tc::node
