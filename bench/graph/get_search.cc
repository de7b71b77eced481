// SPDX-License-Identifier: Apache-2.0
#include "graph/get_search.h"

#include <algorithm>
#include <cstring>

#include "06-graph/bfs.h"

namespace tc::bench {

namespace {
constexpr uint64_t search_ms = 60'000;
constexpr size_t look_at_once = 64;  // rows that came without a wait: while they are in the cache
}  // namespace

Result<std::unique_ptr<GetSearch>> GetSearch::create(const std::string& tls, uint32_t vertices, size_t most_in_flight) {
  std::unique_ptr<GetSearch> client(new GetSearch);
  client->vertices_ = vertices;
  client->most_in_flight_ = most_in_flight;
  TC_ASSIGN(client->party_, UcxParty::create(tls, UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP));
  return client;
}

Status GetSearch::connect(const GetContact& contact) {
  TC_ASSIGN(auto shard, RemoteMemory::reach(*party_, contact));
  servers_.push_back({std::move(shard), contact.address + sizeof(graph_shard), 0});
  return {};
}

void GetSearch::on_data(void* request, ucs_status_t status, void* user) {
  const auto* const row = static_cast<const Row*>(user);
  auto& self = *row->search;
  ucp_request_free(request);
  --self.in_flight_;
  if (status != UCS_OK)
    self.failure_ = status;
  else if (self.rows_land_)
    self.landed_.push_back(row);
}

Status GetSearch::get(const Server& server, uint64_t address, void* to, size_t size, Row* row) {
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &GetSearch::on_data;
  param.user_data = row;
  auto* const request = ucp_get_nbx(server.shard.endpoint(), to, size, address, server.shard.key(), &param);
  if (UCS_PTR_IS_ERR(request)) return check_ucx(UCS_PTR_STATUS(request), "ucp_get_nbx");
  if (request != nullptr)
    ++in_flight_;
  else if (rows_land_)
    landed_.push_back(row);
  return {};
}

// Waits until at most `most_left` GETs are on their way, and looks at the rows that come.
Status GetSearch::drain(size_t most_left, SearchCost& cost) {
  const auto deadline = Deadline::after_ms(search_ms);
  while (true) {
    for (const auto* const row : landed_) look_at(*row, cost);
    landed_.clear();
    TC_CHECK(check_ucx(failure_, "ucp_get_nbx"));
    if (in_flight_ <= most_left) return {};
    TC_CHECK(party_->status());
    if (deadline.passed()) return fail(TC_ERR_TIMEOUT, "{} GETs have not come within {} ms", in_flight_, search_ms);
    party_->wait(Deadline::after_ms(10));
  }
}

void GetSearch::look_at(const Row& row, SearchCost& cost) {
  const auto* const neighbours = neighbours_.data() + row.at;
  cost.edges += row.end - row.begin;
  for (uint64_t i = 0; i < row.end - row.begin; ++i) {
    const auto vertex = neighbours[i];
    if (vertex >= vertices_ || levels_[vertex] != BFS_UNREACHED) continue;
    levels_[vertex] = level_ + 1;
    next_.push_back(vertex);
  }
}

Status GetSearch::fetch_index() {
  const auto servers = static_cast<uint32_t>(servers_.size());
  std::vector<Row> rows(servers, Row{this, 0, 0, 0});
  rows_land_ = false;
  SearchCost ignored;
  for (uint32_t i = 0; i < servers; ++i) {
    auto& server = servers_[i];
    const auto count = size_t{graph_rows(vertices_, i, servers)} + 1;
    server.neighbours = server.offsets + count * sizeof(uint64_t);
    index_.emplace_back(count);
    TC_CHECK(get(server, server.offsets, index_[i].data(), count * sizeof(uint64_t), &rows[i]));
  }
  return drain(0, ignored);
}

// Where the rows of the frontier begin and end: two offsets that lie one behind the other.
Status GetSearch::fetch_offsets(bool indexed, SearchCost& cost) {
  const auto servers = static_cast<uint32_t>(servers_.size());
  rows_.assign(frontier_.size(), Row{this, 0, 0, 0});
  rows_land_ = false;
  for (size_t i = 0; i < frontier_.size(); ++i) {
    const auto owner = graph_owner(frontier_[i], servers), row = graph_row(frontier_[i], servers);
    if (indexed) {
      rows_[i].begin = index_[owner][row];
      rows_[i].end = index_[owner][row + 1];
      continue;
    }
    TC_CHECK(get(servers_[owner], servers_[owner].offsets + row * sizeof(uint64_t), &rows_[i].begin,
                 2 * sizeof(uint64_t), &rows_[i]));
    if (in_flight_ >= most_in_flight_) TC_CHECK(drain(most_in_flight_ * 3 / 4, cost));
  }
  if (!indexed) {
    cost.requests += frontier_.size();
    cost.bytes_to_client += frontier_.size() * 2 * sizeof(uint64_t);
  }
  return drain(0, cost);
}

Status GetSearch::fetch_rows(SearchCost& cost) {
  const auto servers = static_cast<uint32_t>(servers_.size());
  uint64_t total = 0;
  for (auto& row : rows_) {
    row.at = total;
    total += row.end - row.begin;
  }
  if (neighbours_.size() < total) neighbours_.resize(total);
  rows_land_ = true;
  for (size_t i = 0; i < rows_.size(); ++i) {
    auto& row = rows_[i];
    if (row.begin == row.end) continue;
    const auto& server = servers_[graph_owner(frontier_[i], servers)];
    const auto bytes = (row.end - row.begin) * sizeof(uint32_t);
    TC_CHECK(get(server, server.neighbours + row.begin * sizeof(uint32_t), neighbours_.data() + row.at, bytes, &row));
    ++cost.requests;
    cost.bytes_to_client += bytes;
    if (in_flight_ >= most_in_flight_) TC_CHECK(drain(most_in_flight_ * 3 / 4, cost));
    if (landed_.size() >= look_at_once) TC_CHECK(drain(most_in_flight_, cost));
  }
  return drain(0, cost);
}

Result<const Levels*> GetSearch::search(uint32_t source, bool indexed, SearchCost& cost) {
  levels_.assign(vertices_, BFS_UNREACHED);
  levels_[source] = 0;
  frontier_.assign(1, source);
  for (level_ = 0; !frontier_.empty(); ++level_) {
    cost.reached += frontier_.size();
    next_.clear();
    TC_CHECK(fetch_offsets(indexed, cost));
    TC_CHECK(fetch_rows(cost));
    frontier_.swap(next_);
  }
  cost.levels = level_;
  return &levels_;
}

}  // namespace tc::bench
