// SPDX-License-Identifier: Apache-2.0
//
// Questions for slices of code, both ways on one link, and their answers (slice_requests.h has the whole of it).
//
// Thread: the node's.
#pragma once

#include <optional>

#include "node/link/call_receiver.h"
#include "node/link/call_sender.h"

namespace tc::node {

class SliceExchange {
 public:
  SliceExchange(Channel& channel, const CallSender& sender, const CallReceiver& receiver, const LinkServices& services)
      : channel_(channel),
        sender_(sender),
        receiver_(receiver),
        code_(services.code),
        slices_(services.slices),
        counters_(services.counters) {}

  // Asks the peer, which sent this code, for slices that this node cannot run itself. SliceRequests gets the answer.
  void ask(const ContentId& id, const TargetTriple& triple);
  // Answers such a question of the peer's; null: there are none to be had.
  void send(uint32_t number, const ContentId& id, const Bundle* bundle, const TargetTriple& triple);

  // Frames. False: the peer breaks the protocol and was disconnected.
  bool on_question(uint32_t number, const wire::Need& need);
  bool on_answer(uint32_t number, const wire::CodeBody& code);

 private:
  struct Question {
    uint32_t number;
    ContentId id;
  };

  Channel& channel_;
  const CallSender& sender_;
  const CallReceiver& receiver_;
  KnownCode& code_;
  SliceRequests& slices_;
  Counters& counters_;
  std::optional<Question> open_;  // the peer has not answered yet
};

}  // namespace tc::node
