// SPDX-License-Identifier: Apache-2.0
//
// The parts of a node that the parts of a link are made from. Each takes those that it uses, and keeps no more.
//
// Thread: the node's.
#pragma once

#include "node/answers.h"
#include "node/config.h"
#include "node/counters.h"
#include "node/known_code.h"
#include "node/link/channel.h"

namespace tc::node {

class Authority;
class CodeLoader;
class CompileRequests;
class CompilesForPeers;
class PeerFailures;
class SliceRequests;

struct LinkServices {
  ChannelServices channel;
  const Config& config;
  Authority& authority;
  target::Executor& executor;
  Answers& answers;
  KnownCode& code;
  CodeLoader& loader;
  SliceRequests& slices;
  CompileRequests& compile_requests;
  CompilesForPeers& compiles_for_peers;
  PeerFailures& peer_failures;
  Counters& counters;
};

}  // namespace tc::node
