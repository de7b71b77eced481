// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_bench.h"

#include <array>
#include <cstring>
#include <random>

#include "06-graph/bfs.h"
#include "graph/get_search.h"
#include "graph/ifunc_search.h"
#include "graph/shard_set.h"

namespace tc::bench {

namespace {

enum class SearchMode : uint8_t {
  ifunc,            // levels stay at the servers, the client gets counts
  ifunc_collected,  // and then fetches all levels
  get,              // the client fetches offsets and rows
  get_indexed,      // the client holds all offsets beforehand, and fetches rows
};
constexpr std::array search_modes{SearchMode::ifunc, SearchMode::ifunc_collected, SearchMode::get,
                                  SearchMode::get_indexed};
constexpr const char* mode_name(SearchMode mode) noexcept {
  constexpr std::array<const char*, 4> names{"ifunc", "ifunc_collected", "get", "get_indexed"};
  return names[static_cast<size_t>(mode)];
}
constexpr bool is_ifunc(SearchMode mode) noexcept {
  return mode == SearchMode::ifunc || mode == SearchMode::ifunc_collected;
}

struct Search {
  uint32_t source;
  Levels levels;  // as they must be
  SearchCost cost;
};

class GraphBench {
 public:
  explicit GraphBench(const GraphOptions& options) : options_(options) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Status draw_searches();
  Status start_servers();
  Status connect();
  Status measure();
  // Seconds for all searches of a run, without those of comparing.
  Result<double> search_all(SearchMode mode, SearchCost& cost);
  Result<double> search(SearchMode mode, const Search& search, SearchCost& cost);
  Status compare(SearchMode mode, const Search& expected, const Levels& levels);
  Status tell(const std::string& order) { return servers_->tell(order, order); }

  std::string graph_name() const;
  // Of one search: what `part` of the cost is, in the mean.
  double mean(SearchMode mode, uint64_t SearchCost::* part) const;
  double mean(uint64_t SearchCost::* part) const;  // as it must be
  Summary edges_per_s(SearchMode mode) const;
  std::string table() const;
  Json json() const;

  const GraphOptions& options_;
  Site site_;
  std::unique_ptr<ShardSet> shards_;
  std::vector<Search> searches_;
  std::unique_ptr<Servers> servers_;
  std::unique_ptr<IfuncSearch> ifunc_;
  std::unique_ptr<GetSearch> get_;
  Samples<SearchMode> searches_per_s_;
  std::map<SearchMode, SearchCost> costs_;  // of all runs
  uint64_t verified_ = 0;                   // searches whose levels were all compared
};

// The sources are vertices that have edges, drawn from the seed, and the same for all ways and runs.
Status GraphBench::draw_searches() {
  TC_ASSIGN(shards_, ShardSet::create(options_));
  if (shards_->edges() == 0) return fail(TC_ERR_INVALID, "there is nothing to search: the graph has no edges");
  std::mt19937_64 random(options_.seed);
  while (searches_.size() < options_.searches) {
    Search search{static_cast<uint32_t>(random() % shards_->vertices()), {}, {}};
    if (shards_->degree(search.source) == 0) continue;
    search.levels = shards_->search(search.source, search.cost);
    searches_.push_back(std::move(search));
  }
  return {};
}

Status GraphBench::start_servers() {
  TC_ASSIGN(servers_, Servers::start("graph-server", {{"shards", shards_->directory()}}, options_.servers, site_));
  TC_ASSIGN(get_, GetSearch::create(site_.transport.ucx_tls, shards_->vertices(), options_.get_window));
  TC_ASSIGN(ifunc_, IfuncSearch::create(site_.transport, site_.client_host(), shards_->vertices()));
  return {};
}

Status GraphBench::connect() {
  std::vector<std::string> addresses;
  for (const auto& line : servers_->contacts()) {
    GetContact shard;
    if (!read_words(line, shard, addresses.emplace_back()))
      return fail(TC_ERR_INTERNAL, "a server said '{}' when it was to say how to reach it", line);
    TC_CHECK(get_->connect(shard));
  }
  TC_CHECK(tell("get"));
  TC_CHECK(get_->fetch_index());
  TC_CHECK(tell("ifunc"));
  return ifunc_->connect(addresses);
}

Status GraphBench::measure() {
  TC_CHECK(connect());
  // Links between servers are made when they are first needed, and code is compiled for this CPU in the background.
  for (const auto mode : search_modes) {
    SearchCost ignored;
    TC_CHECK(search_all(mode, ignored));
    if (mode == SearchMode::ifunc_collected) TC_CHECK(tell("settle"));
  }
  for (int run = 0; run < options_.runs; ++run)
    for (const auto mode : search_modes) {
      TC_ASSIGN(const auto seconds, search_all(mode, costs_[mode]));
      searches_per_s_.add(mode, options_.searches / seconds);
    }
  return {};
}

Status GraphBench::compare(SearchMode mode, const Search& expected, const Levels& levels) {
  for (uint32_t v = 0; v < shards_->vertices(); ++v)
    if (levels[v] != expected.levels[v])
      return fail(TC_ERR_INTERNAL, "{}: vertex {} is on level {} from vertex {} when it is on level {}",
                  mode_name(mode), v, levels[v], expected.source, expected.levels[v]);
  ++verified_;
  return {};
}

Result<double> GraphBench::search(SearchMode mode, const Search& search, SearchCost& cost) {
  SearchCost one;
  const Levels* levels = nullptr;
  const auto started = now_ns();
  if (is_ifunc(mode)) {
    TC_CHECK(ifunc_->search(search.source, one));
    if (mode == SearchMode::ifunc_collected) {
      TC_ASSIGN(levels, ifunc_->collect(one));
    }
  } else {
    TC_ASSIGN(levels, get_->search(search.source, mode == SearchMode::get_indexed, one));
  }
  const auto spent = now_ns() - started;
  if (one.reached != search.cost.reached || one.edges != search.cost.edges)
    return fail(TC_ERR_INTERNAL, "{}: {} vertices and {} edges from vertex {} when there are {} and {}",
                mode_name(mode), one.reached, one.edges, search.source, search.cost.reached, search.cost.edges);
  SearchCost unmeasured;
  if (levels == nullptr) {
    TC_ASSIGN(levels, ifunc_->collect(unmeasured));
  }
  TC_CHECK(compare(mode, search, *levels));
  cost.bytes_to_client += one.bytes_to_client;
  cost.bytes_from_client += one.bytes_from_client;
  cost.bytes_between_servers += one.bytes_between_servers;
  cost.requests += one.requests;
  return static_cast<double>(spent) / 1e9;
}

Result<double> GraphBench::search_all(SearchMode mode, SearchCost& cost) {
  TC_CHECK(tell(is_ifunc(mode) ? "ifunc" : "get"));
  double seconds = 0;
  for (const auto& one : searches_) {
    auto spent = search(mode, one, cost);
    if (!spent) return context(mode_name(mode), std::move(spent).error());
    seconds += *spent;
  }
  return seconds;
}

Status GraphBench::run() {
  TC_ASSIGN(site_, Site::prepare(options_.transport, options_.loopback, options_.servers));
  TC_CHECK(draw_searches());
  TC_CHECK(start_servers());
  if (auto measured = measure(); !measured) return fail(servers_->explain(std::move(measured).error()));
  return servers_->end();
}

std::string GraphBench::graph_name() const {
  if (!options_.shards.empty()) return options_.shards;
  return fmt::format("R-MAT, scale {}, edge factor {}, seed {}, both ways", options_.scale, options_.edge_factor,
                     options_.seed);
}

double GraphBench::mean(SearchMode mode, uint64_t SearchCost::* part) const {
  return static_cast<double>(costs_.at(mode).*part) / options_.searches / options_.runs;
}

double GraphBench::mean(uint64_t SearchCost::* part) const {
  double sum = 0;
  for (const auto& one : searches_) sum += static_cast<double>(one.cost.*part);
  return sum / options_.searches;
}

Summary GraphBench::edges_per_s(SearchMode mode) const {
  const auto searches = searches_per_s_.of(mode);
  const auto edges = mean(&SearchCost::edges);
  return {searches.median * edges, searches.low * edges, searches.high * edges};
}

std::string GraphBench::table() const {
  const auto introduction = fmt::format(
      "Breadth-first search over {}, {} servers, UCX {}, {} x {}.\n"
      "{}: {} vertices, {} edges; a search reaches {:.0f} vertices by {:.0f} edges on {:.1f} levels (means).\n"
      "{} interleaved runs of {} searches for each way; the levels of all {} searches are right.\n"
      "Medians with quartiles; ratios are medians of the runs' own ratios; bytes are payloads of one search.\n\n",
      describe_network(options_.transport, site_.network), options_.servers, site_.machine.ucx, site_.machine.cores,
      site_.machine.cpu, graph_name(), shards_->vertices(), shards_->edges(), mean(&SearchCost::reached),
      mean(&SearchCost::edges), mean(&SearchCost::levels), options_.runs, options_.searches, verified_);
  Table table(introduction, {{"", -17},
                             {"searches/s", 10},
                             {"", 22},
                             {"M edges/s", 13},
                             {"x GET", 8},
                             {"x indexed", 12},
                             {"requests", 11},
                             {"client bytes", 13},
                             {"between servers", 16}});
  for (const auto mode : search_modes) {
    const auto rate = searches_per_s_.of(mode);
    table.row({mode_name(mode), number(rate.median, "{:.4g}"), quartiles(rate, "{:.4g}"),
               number(edges_per_s(mode).median / 1e6, "{:.4g}"),
               number(searches_per_s_.ratio(mode, SearchMode::get).median, "{:.3f}"),
               number(searches_per_s_.ratio(mode, SearchMode::get_indexed).median, "{:.3f}"),
               number(mean(mode, &SearchCost::requests), "{:.0f}"),
               number(mean(mode, &SearchCost::bytes_to_client) + mean(mode, &SearchCost::bytes_from_client), "{:.0f}"),
               number(mean(mode, &SearchCost::bytes_between_servers), "{:.0f}")});
  }
  return table.take();
}

Json GraphBench::json() const {
  Json root;
  root["bench"] = "graph";
  root["transport"] = options_.transport;
  root["namespaces"] = site_.network.network != nullptr;
  root["servers"] = options_.servers;
  root["graph"] = graph_name();
  root["vertices"] = shards_->vertices();
  root["edges"] = shards_->edges();
  root["runs"] = options_.runs;
  root["searches_per_run"] = options_.searches;
  root["reached_per_search"] = mean(&SearchCost::reached);
  root["edges_per_search"] = mean(&SearchCost::edges);
  root["levels_per_search"] = mean(&SearchCost::levels);
  for (const auto mode : search_modes) {
    Json one;
    put(one, "searches_per_s", searches_per_s_.of(mode));
    put(one, "edges_per_s", edges_per_s(mode));
    if (is_ifunc(mode)) {
      put(one, "rate_ratio_to_get", searches_per_s_.ratio(mode, SearchMode::get));
      put(one, "rate_ratio_to_get_indexed", searches_per_s_.ratio(mode, SearchMode::get_indexed));
    }
    one["requests_per_search"] = mean(mode, &SearchCost::requests);
    root[mode_name(mode)] = one;
  }
  put(root, "rate_ratio_to_get", searches_per_s_.ratio(SearchMode::ifunc, SearchMode::get));
  auto& bytes = root["bytes_moved"];  // payloads of one search
  for (const auto mode : search_modes) {
    const double to_client = mean(mode, &SearchCost::bytes_to_client);
    const double from_client = mean(mode, &SearchCost::bytes_from_client);
    const double between = mean(mode, &SearchCost::bytes_between_servers);
    bytes[mode_name(mode)] = {{"to_client", to_client},
                              {"from_client", from_client},
                              {"between_servers", between},
                              {"all", to_client + from_client + between}};
  }
  root["verified"] = true;  // a wrong answer ends the benchmark
  root["searches_verified"] = verified_;
  put_machine(root, site_.machine);
  return root;
}

}  // namespace

Result<Report> run_graph(const GraphOptions& options) {
  GraphBench bench(options);
  TC_CHECK(bench.run());
  return bench.report();
}

Status serve_graph(const Arguments& arguments, Talk& talk) {
  constexpr uint32_t wait_ms = 2;
  constexpr int waits_per_order_check = 8;
  TC_ASSIGN(auto place, place_in(arguments));
  place.rendezvous += "/nodes";
  TC_ASSIGN(const auto words, read_shard(shard_file(arguments.at("shards"), place.index)));
  TC_ASSIGN(const auto party, UcxParty::create(place.transport.ucx_tls, UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP));
  TC_ASSIGN(const auto rows, UcxMemory::map(*party, std::span(words).size_bytes()));
  std::memcpy(rows.bytes().data(), words.data(), rows.bytes().size());
  const auto& head = *reinterpret_cast<const graph_shard*>(words.data());
  std::vector<uint64_t> scratch(bfs_slot_bytes(head.vertices, head.shards) / sizeof(uint64_t));  // for one search
  TC_ASSIGN(auto node, make_server(place));  // it has no code for graphs
  TC_CHECK(attempt([&] {
    node.expose(BFS_SHARD, rows.bytes());
    node.expose(BFS_SCRATCH, std::as_writable_bytes(std::span(scratch)));
  }));
  TC_ASSIGN(const auto contact, rows.contact());
  TC_CHECK(talk.say(fmt::format("ready {} {}", contact, node.address())));
  bool by_ifunc = true;
  const auto obey = [&](const std::string& order) -> Result<std::string> {
    if (order == "settle")
      TC_CHECK(wait_until_tuned(node));
    else
      by_ifunc = order == "ifunc";
    return order;
  };
  return talk.serve(obey, [&] {
    for (int i = 0; i < waits_per_order_check; ++i)
      if (by_ifunc)
        (void)tc_node_wait(node.handle(), wait_ms, nullptr);
      else
        party->wait(Deadline::after_ms(wait_ms));
  });
}

}  // namespace tc::bench
