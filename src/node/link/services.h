// SPDX-License-Identifier: Apache-2.0
//
// The parts of a node that the parts of a link are made from. Each takes those that it uses, and keeps no more.
//
// Thread: the node's.
#pragma once

#include <functional>

#include "node/answers.h"
#include "node/config.h"
#include "node/link/channel.h"
#include "wire/statistics.h"

namespace tc::node {

class Authority;
class PeerFailures;
class CallPlaces;
struct NodeCode;

struct LinkServices {
  ChannelServices channel;
  Authority& authority;
  target::Executor& executor;
  Answers& answers;
  NodeCode& code;
  PeerFailures& peer_failures;
  CallPlaces& places;
  std::function<wire::NodeReport()> report;  // about this node, for a peer that asks
};

}  // namespace tc::node
