// SPDX-License-Identifier: Apache-2.0
#include "common/transport.h"

#include <algorithm>
#include <array>

#include "common/network.h"
#include "common/shared_key.h"

namespace tc::bench {

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

}  // namespace tc::bench
