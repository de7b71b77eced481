// SPDX-License-Identifier: Apache-2.0
#include "token/token.h"

#include <threechains/threechains.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "common/embedded.h"
#include "common/json.h"
#include "common/node.h"

TC_EMBED(token_ifunc, TC_TOKEN_IFUNC)

namespace tc::bench {

namespace {

constexpr uint32_t deadline_ms = 60'000;

template <auto destroy>
struct With {
  template <class T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};

Result<double> hop_us(tc_endpoint_t* endpoint, tc_ifunc_t* token, uint32_t hops) {
  tc_message_t* message = nullptr;
  TC_CHECK(check(tc_message_create(token, &hops, sizeof hops, &message), "tc_message_create"));
  const std::unique_ptr<tc_message_t, With<tc_message_free>> owned(message);
  const auto started = now_ns();
  tc_future_t* future = nullptr;
  TC_CHECK(check(tc_endpoint_call(endpoint, message, deadline_ms, &future), "tc_endpoint_call"));
  const std::unique_ptr<tc_future_t, With<tc_future_free>> answer(future);
  TC_CHECK(check(tc_future_wait(future, deadline_ms), "waiting for the token"));
  TC_CHECK(check(tc_future_status(future), "the token"));
  return static_cast<double>(now_ns() - started) / 1000 / hops;
}

}  // namespace

Result<TokenResult> run_token(const TokenOptions& options) {
  if (options.addresses.empty())
    return fail(TC_ERR_INVALID, "there is no cluster: run `ifunc cluster 4 -- ifunc bench token`");
  TC_ASSIGN(auto* const node, make_node({{"hops", "65535"}}));
  const std::unique_ptr<tc_node_t, With<tc_node_destroy>> owned(node);
  tc_endpoint_t* endpoint = nullptr;
  const auto first = options.addresses.substr(0, options.addresses.find(','));
  TC_CHECK(check(tc_node_connect(node, first.c_str(), 10'000, &endpoint), "tc_node_connect"));
  tc_ifunc_t* token = nullptr;
  TC_CHECK(
      check(tc_ifunc_register_memory(node, token_ifunc().data(), token_ifunc().size(), &token), "the token's code"));

  TokenResult result;
  result.nodes = static_cast<uint32_t>(1 + std::ranges::count(options.addresses, ','));
  TC_ASSIGN(const auto ignored, hop_us(endpoint, token, std::min(options.hops, 1000u)));  // links, code
  (void)ignored;
  std::vector<double> values;
  for (int run = 0; run < options.runs; ++run) {
    TC_ASSIGN(const auto value, hop_us(endpoint, token, options.hops));
    values.push_back(value);
  }
  result.hop_us = summarize(std::move(values));
  return result;
}

std::string format_token(const TokenOptions& options, const TokenResult& result) {
  if (!options.json)
    return fmt::format("A token round {} nodes, {} hops: {:.2f} us a hop [{:.2f}, {:.2f}], {} runs\n", result.nodes,
                       options.hops, result.hop_us.median, result.hop_us.low, result.hop_us.high, options.runs);
  nlohmann::ordered_json root;
  root["bench"] = "token";
  root["nodes"] = result.nodes;
  root["hops"] = options.hops;
  root["runs"] = options.runs;
  put(root, "hop_us", result.hop_us);
  return root.dump(2) + "\n";
}

}  // namespace tc::bench
