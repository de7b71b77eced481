// SPDX-License-Identifier: Apache-2.0
#include "common/node.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/clock.h"
#include "common/network.h"
#include "trust/key_file.h"

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

namespace {

struct Known {
  const char* name;
  const char* ucx_tls;
  const char* node;  // the option `transport` of a node
  bool by_network;
};

// tcp carries UCX's wire-up on shared memory: GETs and endpoints with error handling need it.
constexpr std::array known{Known{"shm", "posix,self", "shm", false}, Known{"tcp", "tcp,self", "tcp", true},
                           Known{"tls", "tcp,self", "tcp", true}, Known{"ucx-shm", "posix,self", "ucx", false},
                           Known{"ucx-tcp", "tcp,self", "ucx", true}};

const Known* find(const std::string& name) {
  const auto found = std::ranges::find_if(known, [&](const auto& one) { return one.name == name; });
  return found != known.end() ? &*found : nullptr;
}

}  // namespace

Result<BenchTransport> BenchTransport::parse(const std::string& name) {
  const auto* const one = find(name);
  if (one == nullptr)
    return fail(TC_ERR_INVALID, "the transport is '{}' when it is one of {}", name, fmt::join(transport_names(), ", "));
  return BenchTransport{name, one->ucx_tls, one->by_network};
}

BenchTransport BenchTransport::plain() const {
  return encrypted() ? BenchTransport{"tcp", ucx_tls, by_network} : *this;
}

NodeSettings BenchTransport::node_settings() const {
  const auto& one = *find(name);
  NodeSettings settings{{"transport", one.node}};
  if (std::string_view(one.node) == "ucx") settings.emplace_back("ucx-tls", ucx_tls);
  if (name == "shm") return settings;
  if (encrypted()) {
    if (const auto key = shared_key_file(); !key.empty()) settings.emplace_back("key", key);
    return settings;
  }
  for (const auto* const network : {"127.0.0.0/8", Network::range}) settings.emplace_back("trust-network", network);
  return settings;
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const auto& one : known) names.emplace_back(one.name);
  return names;
}

namespace {

constexpr const char* variable = "TC_BENCH_KEY_FILE";

}  // namespace

Result<SharedKey> SharedKey::make() {
  TC_ASSIGN(auto directory, TemporaryDirectory::create());
  const auto file = directory.file("key");
  TC_ASSIGN(const auto key, trust::KeyPair::fresh());
  TC_CHECK(trust::write_key_file(file, key));
  ::setenv(variable, file.c_str(), 1);
  return SharedKey(std::move(directory));
}

std::string shared_key_file() {
  const char* const file = std::getenv(variable);
  return file != nullptr ? file : "";
}

}  // namespace tc::bench
