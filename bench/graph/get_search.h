// SPDX-License-Identifier: Apache-2.0
//
// The search by GET: the client does all of it, and fetches rows of the graph from the servers' memory with
// ucp_get_nbx. It starts the GETs of a whole level before it waits for the first (at most `most_in_flight` at a time),
// and expands each row as soon as it has arrived. Thread: the one that measures.
#pragma once

#include <span>

#include "common/ucx_party.h"
#include "graph/shard_set.h"

namespace tc::bench {

class GetSearch {
 public:
  static Result<std::unique_ptr<GetSearch>> create(const std::string& tls, uint32_t vertices, size_t most_in_flight);
  // Server after server, from 0 on, by what its contact() said.
  Status connect(const GetContact& contact);
  // Fetches all offsets, for searches that are `indexed`.
  Status fetch_index();
  // Levels of all vertices; valid until the next search.
  Result<const Levels*> search(uint32_t source, bool indexed, SearchCost& cost);

 private:
  struct Server {
    RemoteMemory shard;
    uint64_t offsets, neighbours;  // where they lie there
  };
  struct Row {
    GetSearch* search;
    uint64_t begin, end;  // of its neighbours, at the server
    uint64_t at;          // where they land in neighbours_
  };
  GetSearch() = default;
  Status get(const Server& server, uint64_t address, void* to, size_t size, Row* row);
  Status drain(size_t most_left, SearchCost& cost);
  void look_at(const Row& row, SearchCost& cost);
  Status fetch_offsets(bool indexed, SearchCost& cost);
  Status fetch_rows(SearchCost& cost);
  static void on_data(void* request, ucs_status_t status, void* row);

  std::unique_ptr<UcxParty> party_;
  std::vector<Server> servers_;
  uint32_t vertices_ = 0;
  size_t most_in_flight_ = 1;
  std::vector<std::vector<uint64_t>> index_;  // offsets by server
  Levels levels_;
  uint32_t level_ = 0;  // of the frontier
  std::vector<uint32_t> frontier_, next_;
  std::vector<Row> rows_;  // of the frontier
  std::vector<uint32_t> neighbours_;
  std::vector<const Row*> landed_;
  size_t in_flight_ = 0;
  bool rows_land_ = false;  // the data that arrives are rows, not offsets
  ucs_status_t failure_ = UCS_OK;
};

}  // namespace tc::bench
