// SPDX-License-Identifier: Apache-2.0
//
// What a node must do with one of its next polls. The parts of the node set these flags where they notice the work, often in
// the middle of something else, and Node::progress() does it.
//
// Thread: the node's.
#pragma once

namespace tc::node {

struct PendingWork {
  bool backlog = false;         // frames wait for room, answers and questions to be delivered, endpoints to be closed
  bool lost_links = false;      // a link was lost: whoever waits on it is to be told
  bool paused_links = false;    // a link's peer has used up its rate
  bool awaits_answers = false;  // a future may have a deadline
};

}  // namespace tc::node
