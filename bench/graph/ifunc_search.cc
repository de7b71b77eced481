// SPDX-License-Identifier: Apache-2.0
#include "graph/ifunc_search.h"

#include <algorithm>
#include <cstring>

#include "06-graph/search.h"
#include "base/clock.h"
#include "common/embedded.h"

TC_EMBED(bfs_step_ifunc, TC_BFS_STEP_IFUNC)
TC_EMBED(bfs_read_ifunc, TC_BFS_READ_IFUNC)

namespace tc::bench {

namespace {

constexpr threechains::milliseconds search_limit{60'000};
constexpr uint32_t rows_at_once = 1 << 18;

void add_level(void* arg, const bfs_level* level) {
  auto& cost = *static_cast<SearchCost*>(arg);
  cost.reached += level->vertices;
  cost.edges += level->edges;
  cost.levels = level->level + 1;
  cost.requests += level->steps + level->asked_again;
  cost.bytes_between_servers += level->batches * sizeof(bfs_message) + level->sent * sizeof(uint32_t);
}

}  // namespace

IfuncSearch::IfuncSearch(threechains::Node node) : node_(std::move(node)), client_(std::make_unique<bfs_client>()) {}

Result<std::unique_ptr<IfuncSearch>> IfuncSearch::create(const BenchTransport& transport, const std::string& host,
                                                         uint32_t vertices) {
  TC_ASSIGN(auto node,
            make_node(transport,
                      {{"name", "graph client"}, {"listen", host + ":0"}, {"fan-out", "65535"}, {"log", "error"}}));
  std::unique_ptr<IfuncSearch> made(new IfuncSearch(std::move(node)));
  TC_CHECK(attempt("registering code", [&] {
    made->step_ = made->node_.load(bfs_step_ifunc());
    made->read_ = made->node_.load(bfs_read_ifunc());
  }));
  auto& client = *made->client_;
  client.node = made->node_.handle();
  client.step = made->step_->handle();
  client.vertices = vertices;
  client.deadline_ms = static_cast<uint32_t>(search_limit.count());
  made->levels_.resize(vertices);
  return made;
}

IfuncSearch::~IfuncSearch() {
  for (auto& server : servers_) server.abandon();
}

Status IfuncSearch::connect(const std::vector<std::string>& servers) {
  if (servers.size() > BFS_MOST_SERVERS)
    return fail(TC_ERR_LIMIT, "{} servers when at most {} can search together", servers.size(), BFS_MOST_SERVERS);
  for (const auto& address : servers) {
    TC_CHECK(attempt([&] { servers_.push_back(node_.connect(address, connect_limit)); }));
    client_->endpoints[client_->servers++] = servers_.back().handle();
  }
  return {};
}

Status IfuncSearch::search(uint32_t source, SearchCost& cost) {
  const auto status = bfs_search(client_.get(), source, &add_level, &cost);
  if (status != TC_OK) return fail(status, "{}", client_->error);
  cost.bytes_from_client += cost.requests * sizeof(bfs_message) + sizeof(uint32_t);
  cost.bytes_to_client += cost.requests * (sizeof(bfs_answer) + client_->servers * sizeof(uint32_t));
  return {};
}

Result<const Levels*> IfuncSearch::collect(SearchCost& cost) {
  struct Part {
    uint32_t server;
    bfs_range range;
    threechains::Future future;
  };
  std::vector<Part> parts;
  const auto servers = client_->servers;
  TC_CHECK(attempt([&] {
    for (uint32_t server = 0; server < servers; ++server) {
      const auto rows = graph_rows(client_->vertices, server, servers);
      for (uint32_t first = 0; first < rows; first += rows_at_once) {
        const bfs_range range{client_->query, client_->slot, first, std::min(rows - first, rows_at_once), 0};
        parts.push_back({server, range, servers_[server].call(read_->message(range), search_limit)});
      }
    }
  }));
  for (const auto& [server, range, future] : parts) {
    TC_ASSIGN(const auto bytes, attempt(fmt::format("server {}", server), [&] { return future.bytes(search_limit); }));
    const bool came_there = !bytes.empty();
    if (came_there && bytes.size() != range.count * sizeof(uint32_t))
      return fail(TC_ERR_IFUNC, "server {}: {} bytes of levels when {} were due", server, bytes.size(),
                  range.count * sizeof(uint32_t));
    const auto* const levels = reinterpret_cast<const uint32_t*>(bytes.data());
    for (uint32_t i = 0; i < range.count; ++i)
      levels_[graph_vertex(server, range.first + i, servers)] = came_there ? levels[i] : BFS_UNREACHED;
    cost.bytes_from_client += sizeof range;
    cost.bytes_to_client += bytes.size();
    ++cost.requests;
  }
  return &levels_;
}

}  // namespace tc::bench
