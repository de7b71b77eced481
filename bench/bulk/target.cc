// SPDX-License-Identifier: Apache-2.0
//
// The target's process: it obeys the commands that the source sends over the socket pair.
#include <sstream>

#include "bulk/bulk.h"
#include "common/pinning.h"
#include "common/talk.h"

namespace tc::bench {

namespace {

Result<std::string> obey(BulkPeers& peers, Talk& talk, const std::string& order) {
  std::string name;
  size_t size = 0;
  uint64_t rounds = 0;
  std::istringstream(order) >> name >> size >> rounds;
  TC_ASSIGN(const auto mode, parse_bulk_mode(name));
  TC_CHECK(talk.say("go"));
  TC_CHECK(answer_bulk(peers, mode, size, rounds));
  return "done";
}

Status serve(const std::string& name, uint64_t largest, Talk& talk) {
  pin_to(1);
  TC_ASSIGN(const auto transport, BenchTransport::parse(name));
  BulkPeers peers(largest);
  TC_ASSIGN(peers.floor, Floor::offer(transport.by_network));
  TC_ASSIGN(peers.am, BulkAm::create(transport.ucx_tls, peers.landing));
  TC_ASSIGN(peers.node, BulkNode::create(transport, peers.data));
  if (transport.encrypted()) {
    TC_ASSIGN(peers.plain, BulkNode::create(transport.plain(), peers.data));
  }
  const auto meanwhile = [&] { (void)peers.poll(); };
  TC_ASSIGN(const auto am_address, peers.am->address());
  TC_CHECK(talk.say(fmt::format("ready {} {} {} {}", peers.node->address(), am_address, peers.floor.addresses(),
                                peers.plain != nullptr ? peers.plain->address() : "none")));
  TC_ASSIGN(const auto source_am_address, talk.hear(Deadline::after_ms(20'000), meanwhile));
  TC_CHECK(peers.floor.accept());
  TC_CHECK(peers.am->connect(source_am_address));
  TC_CHECK(talk.say("connected"));
  while (true) {
    TC_ASSIGN(const auto order, talk.hear(Deadline::after_ms(600'000), meanwhile));
    if (order == "end") return {};
    auto answer = obey(peers, talk, order);
    TC_CHECK(talk.say(answer ? *answer : "error " + answer.error().message));
  }
}

}  // namespace

int run_bulk_target(const std::string& transport, uint64_t largest) {
  return run_as_partner([&](Talk& talk) { return serve(transport, largest, talk); });
}

}  // namespace tc::bench
