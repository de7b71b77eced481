// SPDX-License-Identifier: Apache-2.0
//
// A helper's side of remote compilation, between the links and the service that compiles. It decides for which peers this
// node compiles, takes their questions, and sends the answers.
//
// Thread: the node's.
#pragma once

#include <memory>

#include "node/common.h"
#include "node/remote_compile/compile_service.h"
#include "wire/compile.h"

namespace tc::node {

class Link;
class Links;

class CompilesForPeers {
 public:
  CompilesForPeers(const Common& common, Links& links) : common_(common), links_(links) {}

  // Starts the service if the operator wants it. `wake` is called from another thread when an answer is there.
  Status start(std::function<void()> wake);
  // Takes the question, or answers why not.
  void on_question(Link& from, const wire::CompileQuestion& question);
  // Is there an answer to send? Costs one load.
  bool has_answers() const noexcept { return service_ != nullptr && service_->has_done(); }
  void send_answers();
  // That link is lost: nobody waits for its jobs any more.
  void forget(uint64_t link_id);

 private:
  Status may_compile_for(const Link& link) const;
  Status take(Link& from, const wire::CompileQuestion& question);
  static void answer(Link& link, uint64_t token, const Result<Bytes>& object);

  const Common& common_;
  Links& links_;
  std::unique_ptr<CompileService> service_;  // null: this node compiles for nobody
};

}  // namespace tc::node
