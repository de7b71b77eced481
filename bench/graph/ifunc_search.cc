// SPDX-License-Identifier: Apache-2.0
#include "graph/ifunc_search.h"

#include <algorithm>
#include <cstring>

#include "06-graph/search.h"
#include "base/clock.h"
#include "common/embedded.h"
#include "common/node.h"

TC_EMBED(bfs_step_ifunc, TC_BFS_STEP_IFUNC)
TC_EMBED(bfs_read_ifunc, TC_BFS_READ_IFUNC)

namespace tc::bench {

namespace {

constexpr uint32_t search_ms = 60'000;
constexpr uint32_t rows_at_once = 1 << 18;

struct FreeFuture {
  void operator()(tc_future_t* future) const { tc_future_free(future); }
};
using Future = std::unique_ptr<tc_future_t, FreeFuture>;

void add_level(void* arg, const bfs_level* level) {
  auto& cost = *static_cast<SearchCost*>(arg);
  cost.reached += level->vertices;
  cost.edges += level->edges;
  cost.levels = level->level + 1;
  cost.requests += level->steps + level->asked_again;
  cost.bytes_between_servers += level->batches * sizeof(bfs_message) + level->sent * sizeof(uint32_t);
}

}  // namespace

Result<std::unique_ptr<IfuncSearchServer>> IfuncSearchServer::create(const Place& place, std::span<std::byte> shard) {
  std::unique_ptr<IfuncSearchServer> server(new IfuncSearchServer);
  const auto& head = *reinterpret_cast<const graph_shard*>(shard.data());
  server->scratch_.resize(bfs_slot_bytes(head.vertices, head.shards) / sizeof(uint64_t));
  TC_ASSIGN(server->node_, make_node(place.transport, {{"name", fmt::format("server {}", place.index)},
                                                       {"listen", place.address},
                                                       {"cluster", place.cluster},
                                                       {"id", std::to_string(place.index)},
                                                       {"trust", place.trust},
                                                       {"log", "error"}}));
  TC_CHECK(check(tc_node_expose(server->node_, BFS_SHARD, shard.data(), shard.size()), "tc_node_expose"));
  TC_CHECK(check(
      tc_node_expose(server->node_, BFS_SCRATCH, server->scratch_.data(), server->scratch_.size() * sizeof(uint64_t)),
      "tc_node_expose"));
  return server;
}

IfuncSearchServer::~IfuncSearchServer() { tc_node_destroy(node_); }

void IfuncSearchServer::wait(uint32_t timeout_ms) { (void)tc_node_wait(node_, timeout_ms, nullptr); }

Status IfuncSearchServer::settle() { return wait_until_tuned(node_); }

IfuncSearch::IfuncSearch() : client_(std::make_unique<bfs_client>()) {}

Result<std::unique_ptr<IfuncSearch>> IfuncSearch::create(const BenchTransport& transport, const std::string& host,
                                                         const std::string& trust, uint32_t vertices) {
  std::unique_ptr<IfuncSearch> made(new IfuncSearch);
  TC_ASSIGN(made->node_, make_node(transport, {{"name", "graph client"},
                                               {"listen", host + ":0"},
                                               {"trust", trust},
                                               {"fan-out", "65535"},
                                               {"log", "error"}}));
  auto& client = *made->client_;
  client.node = made->node_;
  client.vertices = vertices;
  client.deadline_ms = search_ms;
  const auto add = [&](ByteView bundle, tc_ifunc_t** ifunc) {
    return check(tc_ifunc_register_memory(made->node_, bundle.data(), bundle.size(), ifunc), "registering code");
  };
  TC_CHECK(add(bfs_step_ifunc(), &client.step));
  TC_CHECK(add(bfs_read_ifunc(), &made->read_));
  made->levels_.resize(vertices);
  return made;
}

IfuncSearch::~IfuncSearch() { tc_node_destroy(node_); }

Status IfuncSearch::connect(const std::vector<std::string>& servers) {
  if (servers.size() > BFS_MOST_SERVERS)
    return fail(TC_ERR_LIMIT, "{} servers when at most {} can search together", servers.size(), BFS_MOST_SERVERS);
  for (const auto& address : servers)
    TC_CHECK(check(tc_node_connect(node_, address.c_str(), 10'000, &client_->endpoints[client_->servers++]),
                   "tc_node_connect"));
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
    Future future;
  };
  std::vector<Part> parts;
  const auto servers = client_->servers;
  for (uint32_t server = 0; server < servers; ++server) {
    const auto rows = graph_rows(client_->vertices, server, servers);
    for (uint32_t first = 0; first < rows; first += rows_at_once) {
      Part part{server, {client_->query, client_->slot, first, std::min(rows - first, rows_at_once), 0}, {}};
      tc_message_t* message = nullptr;
      tc_future_t* future = nullptr;
      TC_CHECK(check(tc_message_create(read_, &part.range, sizeof part.range, &message), "tc_message_create"));
      const auto called =
          check(tc_endpoint_call(client_->endpoints[server], message, search_ms, &future), "tc_endpoint_call");
      tc_message_free(message);
      TC_CHECK(called);
      part.future.reset(future);
      parts.push_back(std::move(part));
    }
  }
  for (const auto& part : parts) {
    auto status = tc_future_wait(part.future.get(), search_ms);
    if (status == TC_OK) status = tc_future_status(part.future.get());
    if (status != TC_OK) return fail(status, "server {}: {}", part.server, tc_error_message());
    size_t size = 0;
    const auto* const levels = static_cast<const uint32_t*>(tc_future_bytes(part.future.get(), &size));
    const bool came_there = size != 0;
    if (came_there && size != part.range.count * sizeof *levels)
      return fail(TC_ERR_IFUNC, "server {}: {} bytes of levels when {} were due", part.server, size,
                  part.range.count * sizeof *levels);
    for (uint32_t i = 0; i < part.range.count; ++i)
      levels_[graph_vertex(part.server, part.range.first + i, servers)] = came_there ? levels[i] : BFS_UNREACHED;
    cost.bytes_from_client += sizeof part.range;
    cost.bytes_to_client += size;
    ++cost.requests;
  }
  return &levels_;
}

}  // namespace tc::bench
