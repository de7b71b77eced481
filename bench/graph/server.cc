// SPDX-License-Identifier: Apache-2.0
//
// A server's process: it holds a shard, and serves whichever of the two ways is being measured.
#include <cstring>

#include "common/node.h"
#include "common/talk.h"
#include "graph/get_search.h"
#include "graph/graph_bench.h"
#include "graph/ifunc_search.h"
#include "graph/shard_set.h"

namespace tc::bench {

namespace {

constexpr uint64_t order_ms = 600'000;
constexpr uint32_t wait_ms = 2;
constexpr int waits_per_order_check = 8;

Status serve(const GraphServerOptions& options, Talk& talk) {
  TC_ASSIGN(const auto transport, BenchTransport::parse(options.transport));
  TC_ASSIGN(const auto words, read_shard(options.shard));
  TC_ASSIGN(const auto rows, GetServer::create(transport.ucx_tls, std::span(words).size_bytes()));
  std::memcpy(rows->memory().data(), words.data(), rows->memory().size());
  const ServerPlace place{transport, options.host, options.rendezvous + "/nodes", options.index, options.servers};
  TC_ASSIGN(const auto node, IfuncSearchServer::create(place, rows->memory()));
  TC_ASSIGN(const auto contact, rows->contact());
  TC_CHECK(talk.say(fmt::format("ready {} {}", contact, node->address())));
  std::string mode = "ifunc";
  const auto serve_mode = [&] {
    for (int i = 0; i < waits_per_order_check; ++i)
      mode == "ifunc" ? node->wait(wait_ms) : rows->party().wait(Deadline::after_ms(wait_ms));
  };
  while (true) {
    TC_ASSIGN(const auto order, talk.hear(Deadline::after_ms(order_ms), serve_mode));
    if (order == "end") return {};
    if (order == "settle") {
      TC_CHECK(node->settle());
    } else {
      mode = order;
    }
    TC_CHECK(talk.say(order));
  }
}

}  // namespace

int run_graph_server(const GraphServerOptions& options) {
  return run_as_partner([&](Talk& talk) { return serve(options, talk); });
}

}  // namespace tc::bench
