// SPDX-License-Identifier: Apache-2.0
//
// The search with messages in any order: the test is all the servers, and delivers what they send when it likes.
#include <gtest/gtest.h>
#include <threechains/ifunc.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "bfs.h"
#include "rmat.h"

extern "C" void bfs_step_main(void* payload, size_t payload_size, void* target_args);

namespace {

using Payload = std::vector<uint64_t>;  // aligned as the node's are

struct Message {
  uint32_t to;
  Payload words;
  size_t size;
};

struct Server {
  graph_shard* shard = nullptr;
  uint64_t shard_bytes = 0;
  std::vector<uint64_t> scratch;
};

// What injected code sees of the world.
struct World {
  std::vector<Server> servers;
  std::vector<Message> on_their_way;
  uint32_t running = 0;
  std::string failure;
  std::vector<char> answer;
};
World* world = nullptr;

Payload copy(const void* bytes, size_t size) {
  Payload words(size / 8 + 1);
  std::memcpy(words.data(), bytes, size);
  return words;
}

}  // namespace

extern "C" {
uint32_t tc_id(void) { return world->running; }
uint32_t tc_count(void) { return static_cast<uint32_t>(world->servers.size()); }
void* tc_data(const char* name, size_t* size) {
  auto& server = world->servers[world->running];
  if (std::string(name) == BFS_SHARD) return *size = server.shard_bytes, server.shard;
  return *size = server.scratch.size() * 8, server.scratch.data();
}
tc_status_t tc_reply(const void* bytes, size_t size) {
  world->answer.assign(static_cast<const char*>(bytes), static_cast<const char*>(bytes) + size);
  return TC_OK;
}
tc_status_t tc_inject(uint32_t node, const char*, const void* payload, size_t size) {
  world->on_their_way.push_back({node, copy(payload, size), size});
  return TC_OK;
}
void tc_fail(int32_t, const char* message) { world->failure = message; }
}

namespace {

class BfsStep : public testing::Test {
 protected:
  void SetUp() override { world = &world_; }
  void TearDown() override {
    for (auto& server : world_.servers) std::free(server.shard);
    world = nullptr;
  }

  void load(const std::vector<graph_edge>& edges, uint32_t vertices, uint32_t servers) {
    edges_ = edges;
    vertices_ = vertices;
    world_.servers.resize(servers);
    for (uint32_t i = 0; i < servers; ++i) {
      auto& server = world_.servers[i];
      server.shard = graph_make_shard(edges.data(), edges.size(), vertices, i, servers, &server.shard_bytes);
      server.scratch.assign(bfs_slot_bytes(vertices, servers) / 8, 0);
    }
  }

  void run(uint32_t server, Payload words, size_t size) {
    world_.running = server;
    world_.failure.clear();
    world_.answer.clear();
    bfs_step_main(words.data(), size, nullptr);
  }

  // A step as the client sends it. True when it was done.
  bool step(uint64_t query, uint32_t server, uint32_t level, uint32_t batches, const uint32_t* row = nullptr) {
    struct {
      bfs_message head;
      uint32_t row;
    } message{{query, BFS_STEP, 0, level, batches, row != nullptr, 0}, row != nullptr ? *row : 0};
    run(server, copy(&message, sizeof message), sizeof message.head + (row != nullptr ? sizeof message.row : 0));
    if (!world_.failure.empty()) return false;
    std::memcpy(&answer_, world_.answer.data(), sizeof answer_);
    sent_.resize(answer_.servers);
    std::memcpy(sent_.data(), world_.answer.data() + sizeof answer_, 4 * sent_.size());
    return answer_.waiting == 0;
  }

  bool deliver_one(std::mt19937& random) {
    if (world_.on_their_way.empty()) return false;
    const auto at = world_.on_their_way.begin() + static_cast<long>(random() % world_.on_their_way.size());
    const auto message = *at;
    world_.on_their_way.erase(at);
    run(message.to, message.words, message.size);
    EXPECT_EQ(world_.failure, "");
    return true;
  }

  // The whole search; batches come in a random order, some of them only when a server waits for them.
  void search(uint64_t query, uint32_t source, std::mt19937& random) {
    const auto servers = static_cast<uint32_t>(world_.servers.size());
    std::vector<uint32_t> batches(servers), work(servers);
    work[graph_owner(source, servers)] = 1;
    const auto row = graph_row(source, servers);
    for (uint32_t level = 0; std::ranges::count(work, 1u) != 0; ++level) {
      std::vector<uint32_t> next_batches(servers), next_work(servers);
      while (std::ranges::count(work, 1u) != 0) {
        const auto server = static_cast<uint32_t>(random() % servers);
        if (random() % 3 == 0) deliver_one(random);
        if (work[server] == 0) continue;
        if (!step(query, server, level, batches[server], level == 0 ? &row : nullptr)) {
          ASSERT_EQ(world_.failure, "");
          ASSERT_TRUE(deliver_one(random)) << "a server waits for batches that nobody sent";
          continue;
        }
        work[server] = 0;
        next_work[server] |= answer_.found != 0;
        for (uint32_t to = 0; to < servers; ++to)
          if (sent_[to] != 0) ++next_batches[to], next_work[to] = 1;
      }
      batches = next_batches;
      work = next_work;
    }
  }

  uint32_t level_of(uint32_t vertex) {
    const auto servers = static_cast<uint32_t>(world_.servers.size());
    auto* scratch = reinterpret_cast<unsigned char*>(world_.servers[graph_owner(vertex, servers)].scratch.data());
    const auto memory = bfs_memory_at(scratch, vertices_, servers);
    return memory.slot->query == 0 ? BFS_UNREACHED : memory.level[graph_row(vertex, servers)];
  }

  std::vector<uint32_t> expected(uint32_t source) const {
    std::vector<uint32_t> levels(vertices_, BFS_UNREACHED);
    std::vector<std::vector<uint32_t>> neighbours(vertices_);
    for (const auto& edge : edges_) neighbours[edge.from].push_back(edge.to);
    std::queue<uint32_t> queue({source});
    levels[source] = 0;
    for (; !queue.empty(); queue.pop())
      for (const auto to : neighbours[queue.front()])
        if (levels[to] == BFS_UNREACHED) levels[to] = levels[queue.front()] + 1, queue.push(to);
    return levels;
  }

  World world_;
  std::vector<graph_edge> edges_;
  uint32_t vertices_ = 0;
  bfs_answer answer_{};
  std::vector<uint32_t> sent_;
};

std::vector<graph_edge> sparse_graph(uint32_t scale, uint64_t seed) {
  std::vector<graph_edge> edges;
  for (uint64_t i = 0; i < uint64_t{2} << scale; ++i) edges.push_back(rmat_edge(i, scale, seed));
  for (uint32_t v = 0; v + 1 < 1u << scale; v += 3) edges.push_back({v, v + 1});  // long ways, for many levels
  return edges;
}

TEST_F(BfsStep, finds_the_same_levels_in_whatever_order_batches_arrive) {
  uint64_t query = 0;
  load(sparse_graph(7, 1), 1 << 7, 5);
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const uint32_t source = random() % vertices_;
    search(++query, source, random);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(world_.on_their_way.empty());
    const auto levels = expected(source);
    for (uint32_t v = 0; v < vertices_; ++v) {
      const auto found = level_of(v);
      const auto owner = graph_owner(v, 5);
      const auto* slot = reinterpret_cast<const bfs_slot*>(world_.servers[owner].scratch.data());
      if (slot->query != query)  // this search never came there
        ASSERT_EQ(levels[v], BFS_UNREACHED) << "seed " << seed << ", vertex " << v;
      else
        ASSERT_EQ(found, levels[v]) << "seed " << seed << ", vertex " << v;
    }
  }
}

// Server 1 is reached twice: late by a batch of level 1, early by one of level 2.
TEST_F(BfsStep, a_batch_of_the_next_level_may_come_before_one_of_this_level) {
  load({{0, 1}, {0, 2}, {2, 1}}, 3, 3);
  const uint32_t row = 0;
  ASSERT_TRUE(step(7, 0, 0, 0, &row));
  ASSERT_EQ(world_.on_their_way.size(), 2u);
  const auto to_1 = world_.on_their_way[0], to_2 = world_.on_their_way[1];
  run(2, to_2.words, to_2.size);
  ASSERT_TRUE(step(7, 2, 1, 1));
  const auto early = world_.on_their_way[2];
  run(1, early.words, early.size);
  EXPECT_EQ(level_of(1), 2u);
  EXPECT_FALSE(step(7, 1, 1, 1)) << "a step must wait for its batch";
  EXPECT_EQ(world_.failure, "");
  run(1, to_1.words, to_1.size);
  EXPECT_EQ(level_of(1), 1u);
  ASSERT_TRUE(step(7, 1, 1, 1));
  EXPECT_EQ(answer_.expanded, 1u);
  ASSERT_TRUE(step(7, 1, 2, 1));
  EXPECT_EQ(answer_.expanded, 0u) << "it was expanded on its own level";
}

TEST_F(BfsStep, what_an_abandoned_search_left_on_its_way_changes_nothing) {
  load({{0, 1}, {1, 2}}, 3, 3);
  const uint32_t row = 0;
  ASSERT_TRUE(step(7, 0, 0, 0, &row));
  ASSERT_TRUE(step(8, 1, 0, 0, &row));
  run(1, world_.on_their_way[0].words, world_.on_their_way[0].size);
  EXPECT_EQ(world_.failure, "");
  EXPECT_EQ(level_of(1), 0u);
  EXPECT_FALSE(step(7, 1, 1, 1));
  EXPECT_NE(world_.failure.find("another search"), std::string::npos) << world_.failure;
}

TEST_F(BfsStep, messages_that_contradict_themselves_are_refused) {
  load({{0, 1}}, 2, 2);
  bfs_message message{1, BFS_BATCH, 0, 1, 0, 3, 0};
  run(1, copy(&message, sizeof message), sizeof message);
  EXPECT_NE(world_.failure.find("as long as it says"), std::string::npos) << world_.failure;
  message.count = 0;
  message.slot = 1;
  run(1, copy(&message, sizeof message), sizeof message);
  EXPECT_NE(world_.failure.find("--scratch"), std::string::npos) << world_.failure;
  message.slot = 0;
  message.kind = 9;
  run(1, copy(&message, sizeof message), sizeof message);
  EXPECT_NE(world_.failure, "");
  const uint32_t row = 1;  // server 1 has row 0 alone
  EXPECT_FALSE(step(2, 1, 0, 0, &row));
  EXPECT_NE(world_.failure.find("a row"), std::string::npos) << world_.failure;
}

}  // namespace
