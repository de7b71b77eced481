// SPDX-License-Identifier: Apache-2.0
//
// Code for other processors. A node is sent only the slices that it can run itself; when code goes on from it to
// another kind of processor, the slices for that one are requested from the node that sent the code here. That node may
// have to request them in its turn: the requests follow the code's path back to where it was registered, where all slices are.
//
// Each question goes to the peer the code first came from, which was earlier at it than we were, so that questions
// cannot run in a circle; only when that peer is gone, to any other that called the code here. One question at a
// time is open on a link.
//
// Thread: the node's. Answers are delivered with the next poll(), as questions end in the middle of everything.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/code/codes.h"
#include "wire/bundle.h"
#include "wire/frame.h"

namespace tc::node {

class CallReceiver;
class CallSender;
class Channel;
class Link;
class Links;

class SliceRequests {
 public:
  // What waits for the answer: a link's own calls, or (with the number of its request) the peer behind the link.
  struct Requester {
    uint64_t link_id = 0;
    std::optional<uint32_t> number;
  };

  SliceRequests(const Common& common, Codes& codes, Links& links) : common_(common), codes_(codes), links_(links) {
    suppliers_.max_load_factor(0.25F);  // so that adding one seldom looks at others, long out of the CPU's caches
  }

  // Asks for the slices of `bundle` that run on `triple`. The requester hears of it: CallSender::on_slices() for its own
  // calls, SliceExchange::send() for its peer. TC_ERR_NO_SLICE when there is nobody to ask, in words for the sender.
  Status ask(const Bundle& bundle, const TargetTriple& triple, Requester requester);

  // `from` answered the question that was open on it.
  void on_answer(const Channel& from, Result<Bundle> answer);
  void on_link_lost(const Link& link);
  // Gives up on what took too long. Cheap when nothing is open.
  void tick();
  // Tells the requesters what has ended. True when there was something to tell.
  bool deliver();

  // This code first came by that link.
  void record_supplier(const ContentId& id, uint64_t link_id) { suppliers_.try_emplace(id, link_id); }
  void forget(const ContentId& id) { suppliers_.erase(id); }

 private:
  struct Request {
    ContentId id;
    std::string name;  // of the ifunc, for messages
    TargetTriple triple;
    uint64_t supplier = 0;  // id of the link it goes to
    bool sent = false;      // else another question to the same peer is open
    uint64_t since_ns = 0;
    std::vector<Requester> requesters;  // none: they gave up, but the answer will still come
  };
  struct Ended {
    ContentId id;
    Requester requester;
    TargetTriple triple;
    std::optional<Error> error;  // none: the slices are at hand
  };

  // A link whose peer may have the slices, and does not wait for our answer itself. Null: there is none.
  Link* supplier_of(const ContentId& id, const std::vector<Requester>& requesters) const;
  void send_next(Link& link);
  void end(Request& request, const std::optional<Error>& error);

  const Common& common_;
  Codes& codes_;
  Links& links_;
  std::deque<Request> open_;
  std::vector<Ended> ended_;
  std::unordered_map<ContentId, uint64_t> suppliers_;  // link ids
};

// Questions for slices of code, both ways on one link, and their answers.
class SliceExchange {
 public:
  SliceExchange(Channel& channel, const CallSender& sender, const CallReceiver& receiver, SliceRequests& requests,
                Codes& codes)
      : channel_(channel), sender_(sender), receiver_(receiver), requests_(requests), codes_(codes) {}

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
  SliceRequests& requests_;
  Codes& codes_;
  std::optional<Question> open_;  // the peer has not answered yet
};

}  // namespace tc::node
