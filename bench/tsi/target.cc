// SPDX-License-Identifier: Apache-2.0
//
// The target's process: it obeys the commands that the source sends over the socket pair.
#include <cstdio>
#include <sstream>

#include "common/pinning.h"
#include "common/talk.h"
#include "tsi/tsi.h"
#include "tsi/tsi_bundle.h"

namespace tc::bench {

namespace {

struct Command {
  std::string verb, word;
  uint64_t number = 0;
};

Command parse(const std::string& line) {
  Command command;
  std::istringstream(line) >> command.verb >> command.word >> command.number;
  return command;
}

Result<std::string> obey(Peers& peers, Talk& talk, const Command& command) {
  if (command.verb == "stat") {
    TC_ASSIGN(const auto value, peers.ifunc->stat(command.word.c_str()));
    return fmt::format("stat {}", value);
  }
  if (command.verb == "use") {
    TC_ASSIGN(const auto bundle,
              tsi_variant(command.word == "bitcode" ? SliceForm::bitcode : SliceForm::object, "bench"));
    TC_CHECK(peers.ifunc->use(bundle));
    if (peers.plain != nullptr) TC_CHECK(peers.plain->use(bundle));
    return "used";
  }
  TC_ASSIGN(const auto mode, parse_mode(command.word));
  TC_CHECK(talk.say("go"));
  if (command.verb == "latency") TC_CHECK(answer_latency(peers, mode, command.number));
  if (command.verb == "rate") TC_CHECK(answer_rate(peers, mode, command.number));
  return "done";
}

Status serve(const std::string& name, Talk& talk) {
  pin_to(1);
  TC_ASSIGN(const auto transport, BenchTransport::parse(name));
  Peers peers;
  TC_ASSIGN(peers.floor, Floor::offer(transport.by_network));
  TC_ASSIGN(peers.am, AmPeer::create(transport.ucx_tls));
  TC_ASSIGN(peers.ifunc, IfuncPeer::create(transport));
  if (transport.encrypted()) {
    TC_ASSIGN(peers.plain, IfuncPeer::create(transport.plain()));
  }
  const auto meanwhile = [&] { peers.poll(); };
  TC_CHECK(talk.say(fmt::format("ready {} {} {} {}", peers.ifunc->address(), peers.am->address(),
                                peers.floor.addresses(), peers.plain != nullptr ? peers.plain->address() : "none")));
  TC_ASSIGN(const auto line, talk.hear(Deadline::after_ms(20'000), meanwhile));
  std::string verb, node_address, am_address, plain_address;
  std::istringstream(line) >> verb >> node_address >> am_address >> plain_address;
  TC_CHECK(peers.floor.accept());
  TC_CHECK(peers.am->connect(am_address));
  TC_CHECK(peers.ifunc->connect(node_address));
  if (peers.plain != nullptr) TC_CHECK(peers.plain->connect(plain_address));
  TC_CHECK(talk.say("connected"));
  while (true) {
    TC_ASSIGN(const auto order, talk.hear(Deadline::after_ms(600'000), meanwhile));
    if (order == "end") return {};
    auto answer = obey(peers, talk, parse(order));
    TC_CHECK(talk.say(answer ? *answer : "error " + answer.error().message));
  }
}

}  // namespace

int run_tsi_target(const std::string& transport) {
  return run_as_partner([&](Talk& talk) { return serve(transport, talk); });
}

}  // namespace tc::bench
