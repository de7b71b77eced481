// SPDX-License-Identifier: Apache-2.0
#include "graph/shard_set.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "06-graph/bfs.h"
#include "06-graph/rmat.h"

namespace tc::bench {

std::string shard_file(const std::string& directory, uint32_t index) {
  return fmt::format("{}/{}.shard", directory, index);
}

Result<std::vector<uint64_t>> read_shard(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return fail(TC_ERR_NOT_FOUND, "{}: {}", file, error.message());
  std::vector<uint64_t> words((size + 7) / 8);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(size)))
    return fail(TC_ERR_IO, "{}: cannot be read", file);
  const auto* const shard = reinterpret_cast<const graph_shard*>(words.data());
  if (!graph_is_shard(shard, size)) return fail(TC_ERR_MALFORMED, "{} is not a whole shard of a graph", file);
  const auto* const offsets = graph_offsets(shard);
  for (uint32_t row = 0; row <= shard->rows; ++row)
    if (offsets[row] > shard->local_edges || (row > 0 && offsets[row] < offsets[row - 1]))
      return fail(TC_ERR_MALFORMED, "{}: offset {} of row {} is out of order", file, offsets[row], row);
  for (uint64_t i = 0; i < shard->local_edges; ++i)
    if (graph_neighbours(shard)[i] >= shard->vertices)
      return fail(TC_ERR_MALFORMED, "{}: an edge to vertex {} of {}", file, graph_neighbours(shard)[i],
                  shard->vertices);
  return words;
}

Result<std::unique_ptr<ShardSet>> ShardSet::create(const GraphOptions& options) {
  std::unique_ptr<ShardSet> set(new ShardSet);
  set->directory_ = options.shards;
  if (options.shards.empty()) TC_CHECK(set->generate(options));
  TC_CHECK(set->load(options.servers));
  return set;
}

Status ShardSet::generate(const GraphOptions& options) {
  TC_ASSIGN(generated_, TemporaryDirectory::create());
  directory_ = generated_->path();
  const uint64_t count = uint64_t{options.edge_factor} << options.scale;
  std::vector<graph_edge> edges;
  edges.reserve(2 * count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto edge = rmat_edge(i, options.scale, options.seed);
    edges.push_back(edge);
    edges.push_back({edge.to, edge.from});
  }
  for (uint32_t i = 0; i < options.servers; ++i) {
    uint64_t bytes = 0;
    const std::unique_ptr<graph_shard, void (*)(void*)> shard(
        graph_make_shard(edges.data(), edges.size(), 1u << options.scale, i, options.servers, &bytes), &std::free);
    if (shard == nullptr) return fail(TC_ERR_IO, "no memory for a shard of {} bytes", bytes);
    std::ofstream stream(shard_file(directory_, i), std::ios::binary);
    stream.write(reinterpret_cast<const char*>(shard.get()), static_cast<std::streamsize>(bytes));
    if (!stream.flush()) return fail(TC_ERR_IO, "{}: cannot be written", shard_file(directory_, i));
  }
  return {};
}

Status ShardSet::load(uint32_t servers) {
  for (uint32_t i = 0; i < servers; ++i) {
    TC_ASSIGN(auto words, read_shard(shard_file(directory_, i)));
    shards_.push_back(std::move(words));
    if (at(i).shard != i || at(i).shards != servers || at(i).vertices != vertices() || at(i).edges != edges())
      return fail(TC_ERR_INVALID, "{} is part {} of {} when it is to be part {} of {}, of one graph with {} vertices",
                  shard_file(directory_, i), at(i).shard, at(i).shards, i, servers, vertices());
  }
  return {};
}

const graph_shard& ShardSet::at(uint32_t index) const noexcept {
  return *reinterpret_cast<const graph_shard*>(shards_[index].data());
}

uint64_t ShardSet::degree(uint32_t vertex) const noexcept {
  const auto servers = static_cast<uint32_t>(shards_.size());
  const auto* const offsets = graph_offsets(&at(graph_owner(vertex, servers))) + graph_row(vertex, servers);
  return offsets[1] - offsets[0];
}

Levels ShardSet::search(uint32_t source, SearchCost& cost) const {
  const auto servers = static_cast<uint32_t>(shards_.size());
  Levels levels(vertices(), BFS_UNREACHED);
  std::vector<uint32_t> queue{source};
  levels[source] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto vertex = queue[i];
    const auto* const shard = &at(graph_owner(vertex, servers));
    const auto row = graph_row(vertex, servers);
    for (uint64_t e = graph_offsets(shard)[row]; e < graph_offsets(shard)[row + 1]; ++e) {
      const auto to = graph_neighbours(shard)[e];
      ++cost.edges;
      if (levels[to] != BFS_UNREACHED) continue;
      levels[to] = levels[vertex] + 1;
      queue.push_back(to);
    }
  }
  cost.reached = queue.size();
  cost.levels = levels[queue.back()] + 1;
  return levels;
}

}  // namespace tc::bench
