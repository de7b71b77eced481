// SPDX-License-Identifier: Apache-2.0
#include "common/node.h"

#include "base/clock.h"

namespace tc::bench {

Result<threechains::Node> make_node(const BenchTransport& transport, const NodeSettings& settings) {
  auto all = transport.node_settings();
  all.insert(all.end(), settings.begin(), settings.end());
  return make_node(all);
}

Result<threechains::Node> make_node(const NodeSettings& settings) {
  return attempt("a node of the benchmark", [&] {
    threechains::Config config;
    for (const auto& [key, value] : settings) config.set(key, value);
    return threechains::Node(config);
  });
}

Result<threechains::Endpoint> connect(threechains::Node& node, const std::string& address, bool encrypted) {
  TC_ASSIGN(auto endpoint, attempt([&] { return node.connect(address, connect_limit); }));
  const auto transport = endpoint.transport();
  if ((transport == "tls") == encrypted) return endpoint;
  endpoint.abandon();
  return fail(TC_ERR_INTERNAL, "the connection to {} is {} when it should {}be encrypted", address, transport,
              encrypted ? "" : "not ");
}

Result<threechains::Node> make_server(const ServerPlace& place, const NodeSettings& further) {
  NodeSettings settings{{"name", fmt::format("server {}", place.index)},
                        {"listen", place.host + ":0"},
                        {"bootstrap", "dir:" + place.rendezvous},
                        {"bootstrap-timeout", "60000"},
                        {"nodes", std::to_string(place.count)},
                        {"id", std::to_string(place.index)},
                        {"log", "error"}};
  settings.insert(settings.end(), further.begin(), further.end());
  return make_node(place.transport, settings);
}

Status wait_until_tuned(threechains::Node& node) {
  constexpr threechains::milliseconds poll_interval{1};
  const auto deadline = Deadline::after_ms(30'000);
  return attempt([&] {
    uint64_t codes = 0, tuned = 0;
    do {
      node.wait(poll_interval);
      codes = node.stat("codes");
      tuned = node.stat("tuned");
      if (tuned >= codes) return;
    } while (!deadline.passed());
    throw threechains::Error(TC_ERR_TIMEOUT,
                             fmt::format("{} of {} ifuncs are compiled for this CPU after 30 s", tuned, codes));
  });
}

std::string element(const std::string& list, uint32_t index) {
  size_t begin = 0;
  while (index-- > 0) begin = list.find(',', begin) + 1;
  return list.substr(begin, list.find(',', begin) - begin);
}

}  // namespace tc::bench
