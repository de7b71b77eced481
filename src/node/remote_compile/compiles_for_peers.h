// SPDX-License-Identifier: Apache-2.0
//
// A helper's side of remote compilation, between the links and the service that compiles. It decides for which peers this
// node compiles, takes their questions, and sends the answers.
//
// Thread: the node's.
#pragma once

#include <memory>

#include "node/config.h"
#include "node/counters.h"
#include "node/identity.h"
#include "node/remote_compile/compile_service.h"
#include "wire/compile.h"

namespace spdlog {
class logger;
}

namespace tc::node {

class Link;
class Links;

class CompilesForPeers {
 public:
  CompilesForPeers(Links& links, const Config& config, const Identity& self, Counters& counters, spdlog::logger& log)
      : links_(links), config_(config), self_(self), counters_(counters), log_(log) {}

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

  Links& links_;
  const Config& config_;
  const Identity& self_;
  Counters& counters_;
  spdlog::logger& log_;
  std::unique_ptr<CompileService> service_;  // null: this node compiles for nobody
};

}  // namespace tc::node
