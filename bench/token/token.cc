// SPDX-License-Identifier: Apache-2.0
#include "token/token.h"

#include <algorithm>

#include "base/clock.h"
#include "common/embedded.h"
#include "common/node.h"
#include "common/report.h"

TC_EMBED(token_ifunc, TC_TOKEN_IFUNC)

namespace tc::bench {

namespace {

constexpr threechains::milliseconds limit{60'000};

Result<double> hop_us(threechains::Endpoint& endpoint, const threechains::Ifunc& token, uint32_t hops) {
  return attempt("the token", [&] {
    const auto message = token.message(hops);
    const auto started = now_ns();
    (void)endpoint.call(message, limit).bytes(limit);
    return static_cast<double>(now_ns() - started) / 1000 / hops;
  });
}

}  // namespace

Result<Report> run_token(const TokenOptions& options) {
  if (options.addresses.empty())
    return fail(TC_ERR_INVALID, "there is no cluster: run `ifunc cluster 4 -- ifunc bench token`");
  TC_ASSIGN(auto node, make_node({{"hops", "65535"}}));
  TC_ASSIGN(auto endpoint, attempt([&] { return node.connect(element(options.addresses, 0), connect_limit); }));
  TC_ASSIGN(const auto token, attempt("the token's code", [&] { return node.load(token_ifunc()); }));
  TC_CHECK(hop_us(endpoint, token, std::min(options.hops, 1000u)));  // links, code
  std::vector<double> values;
  for (int run = 0; run < options.runs; ++run) {
    TC_ASSIGN(values.emplace_back(), hop_us(endpoint, token, options.hops));
  }
  const auto nodes = 1 + std::ranges::count(options.addresses, ',');
  const auto us = summarize(std::move(values));
  Json root;
  root["bench"] = "token";
  root["nodes"] = nodes;
  root["hops"] = options.hops;
  root["runs"] = options.runs;
  put(root, "hop_us", us);
  return Report{fmt::format("A token round {} nodes, {} hops: {:.2f} us a hop [{:.2f}, {:.2f}], {} runs\n", nodes,
                            options.hops, us.median, us.low, us.high, options.runs),
                root};
}

}  // namespace tc::bench
