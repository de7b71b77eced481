// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_bench.h"

#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <sstream>

#include "base/file.h"
#include "common/network.h"
#include "common/shared_key.h"
#include "common/talk.h"
#include "graph/get_search.h"
#include "graph/ifunc_search.h"
#include "graph/shard_set.h"

namespace tc::bench {

namespace {

constexpr uint64_t answer_ms = 120'000;

struct Search {
  uint32_t source;
  Levels levels;  // as they must be
  SearchCost cost;
};

class GraphBench {
 public:
  explicit GraphBench(const GraphOptions& options) { result_.options = options; }
  Status run();
  GraphResult take() { return std::move(result_); }

  // The error, with the news of a server that ended in front: it is the cause.
  Error explain(Error error);

 private:
  using Seconds = std::map<SearchMode, double>;
  const GraphOptions& options() const noexcept { return result_.options; }
  Status prepare_network();
  Status draw_searches();
  Status start_servers();
  Status connect();
  Status warm_up();
  Status tell(const std::string& order);
  Result<std::string> hear(uint32_t server);
  // Seconds for all searches of a run, without those of comparing.
  Result<double> search_all(SearchMode mode, SearchCost& cost);
  Result<double> search(SearchMode mode, const Search& search, SearchCost& cost);
  Status compare(SearchMode mode, const Search& expected, const Levels& levels);
  void summarize_runs(const std::vector<Seconds>& runs, const std::map<SearchMode, SearchCost>& costs);

  GraphResult result_;
  BenchTransport transport_;
  std::string host_ = "127.0.0.1";
  std::optional<SharedKey> key_;
  std::optional<TemporaryDirectory> rendezvous_;  // where the servers' nodes find each other
  std::vector<Search> searches_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<ShardSet> shards_;
  std::vector<std::unique_ptr<Partner>> servers_;
  std::unique_ptr<IfuncSearch> ifunc_;
  std::unique_ptr<GetSearch> get_;
};

Status GraphBench::prepare_network() {
  TC_ASSIGN(transport_, BenchTransport::parse(options().transport));
  if (!transport_.by_network) return {};
  if (transport_.encrypted()) {
    TC_ASSIGN(key_, SharedKey::make());
  }
  auto chosen = choose_network(options().loopback, options().servers);
  network_ = std::move(chosen.network);
  result_.why_no_namespaces = chosen.why_none;
  result_.namespaces = network_ != nullptr;
  return {};
}

// The sources are vertices that have edges, drawn from the seed, and the same for all ways and runs.
Status GraphBench::draw_searches() {
  TC_ASSIGN(shards_, ShardSet::create(options()));
  result_.vertices = shards_->vertices();
  result_.edges = shards_->edges();
  if (result_.edges == 0) return fail(TC_ERR_INVALID, "there is nothing to search: the graph has no edges");
  std::mt19937_64 random(options().seed);
  while (searches_.size() < options().searches) {
    Search search{static_cast<uint32_t>(random() % shards_->vertices()), {}, {}};
    if (shards_->degree(search.source) == 0) continue;
    search.levels = shards_->search(search.source, search.cost);
    const auto share = 1.0 / options().searches;
    result_.reached += share * static_cast<double>(search.cost.reached);
    result_.edges_searched += share * static_cast<double>(search.cost.edges);
    result_.levels += share * static_cast<double>(search.cost.levels);
    searches_.push_back(std::move(search));
  }
  return {};
}

Status GraphBench::start_servers() {
  if (network_ != nullptr) host_ = Network::client_address();
  TC_ASSIGN(rendezvous_, TemporaryDirectory::create());
  for (uint32_t i = 0; i < options().servers; ++i) {
    const std::vector<std::string> arguments{"bench",        "graph-server",
                                             "--transport",  options().transport,
                                             "--shard",      shards_->file(i),
                                             "--host",       network_ != nullptr ? Network::server_address(i) : host_,
                                             "--rendezvous", rendezvous_->path().string(),
                                             "--index",      std::to_string(i),
                                             "--servers",    std::to_string(options().servers)};
    TC_ASSIGN(auto server, Partner::start(arguments, [&] { return network_ == nullptr || network_->enter(i); }));
    servers_.push_back(std::move(server));
  }
  return {};
}

Status GraphBench::connect() {
  TC_ASSIGN(get_, GetSearch::create(transport_.ucx_tls, result_.vertices, options().get_window));
  TC_ASSIGN(ifunc_, IfuncSearch::create(transport_, host_, result_.vertices));
  std::vector<std::string> addresses;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    TC_ASSIGN(const auto line, hear(i));
    std::string verb, node;
    GetContact shard;
    if (!(std::istringstream(line) >> verb >> shard.worker >> shard.key >> shard.address >> node) || verb != "ready")
      return fail(TC_ERR_INTERNAL, "server {} said '{}' when it was to be ready", i, line);
    TC_CHECK(get_->connect(shard));
    addresses.push_back(node);
  }
  rendezvous_.reset();  // all have met
  TC_CHECK(tell("get"));
  TC_CHECK(get_->fetch_index());
  TC_CHECK(tell("ifunc"));
  TC_CHECK(ifunc_->connect(addresses));
  return {};
}

Status GraphBench::tell(const std::string& order) {
  for (auto& server : servers_) TC_CHECK(server->talk().say(order));
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    TC_ASSIGN(const auto answer, hear(i));
    if (answer != order) return fail(TC_ERR_INTERNAL, "server {} said '{}' when '{}' was due", i, answer, order);
  }
  return {};
}

Result<std::string> GraphBench::hear(uint32_t server) {
  auto line = servers_[server]->talk().hear(Deadline::after_ms(answer_ms));
  if (line) return line;
  return context(fmt::format("server {}", server), std::move(line).error());
}

Error GraphBench::explain(Error error) {
  // A process closes its end of the talk before the system tells its parent how it ended.
  const auto deadline = Deadline::after_ms(error.code == TC_ERR_DISCONNECTED ? 200 : 0);
  do {
    for (uint32_t i = 0; i < servers_.size(); ++i)
      if (const auto& end = servers_[i]->end(); !end.empty())
        return {TC_ERR_DISCONNECTED, fmt::format("server {} {} ({})", i, end, error.message)};
    ::usleep(5000);
  } while (!deadline.passed());
  return error;
}

// Links between servers are made when they are first needed, and code is compiled for this CPU in the background.
Status GraphBench::warm_up() {
  for (const auto mode : search_modes) {
    SearchCost ignored;
    TC_CHECK(search_all(mode, ignored));
    if (mode == SearchMode::ifunc_collected) TC_CHECK(tell("settle"));
  }
  return {};
}

Status GraphBench::compare(SearchMode mode, const Search& expected, const Levels& levels) {
  for (uint32_t v = 0; v < result_.vertices; ++v)
    if (levels[v] != expected.levels[v])
      return fail(TC_ERR_INTERNAL, "{}: vertex {} is on level {} from vertex {} when it is on level {}",
                  mode_name(mode), v, levels[v], expected.source, expected.levels[v]);
  ++result_.verified;
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

void GraphBench::summarize_runs(const std::vector<Seconds>& runs, const std::map<SearchMode, SearchCost>& costs) {
  const auto over_runs = [&](auto&& value) {
    std::vector<double> values;
    for (const auto& run : runs) values.push_back(value(run));
    return summarize(std::move(values));
  };
  const double searches = options().searches;
  for (const auto mode : search_modes) {
    auto& to = result_.modes[mode];
    to.searches_per_s = over_runs([&](const Seconds& run) { return searches / run.at(mode); });
    to.edges_per_s = over_runs([&](const Seconds& run) { return searches * result_.edges_searched / run.at(mode); });
    to.ratio_to_get = over_runs([&](const Seconds& run) { return run.at(SearchMode::get) / run.at(mode); });
    to.ratio_to_get_indexed =
        over_runs([&](const Seconds& run) { return run.at(SearchMode::get_indexed) / run.at(mode); });
    const auto& cost = costs.at(mode);
    const double all = searches * static_cast<double>(runs.size());
    to.bytes_to_client = static_cast<double>(cost.bytes_to_client) / all;
    to.bytes_from_client = static_cast<double>(cost.bytes_from_client) / all;
    to.bytes_between_servers = static_cast<double>(cost.bytes_between_servers) / all;
    to.requests = static_cast<double>(cost.requests) / all;
  }
}

Status GraphBench::run() {
  result_.machine = describe_machine(ucp_get_version_string());
  TC_CHECK(prepare_network());
  TC_CHECK(draw_searches());
  TC_CHECK(start_servers());
  TC_CHECK(connect());
  TC_CHECK(warm_up());
  std::vector<Seconds> runs;
  std::map<SearchMode, SearchCost> costs;
  for (int run = 0; run < options().runs; ++run) {
    Seconds seconds;
    for (const auto mode : search_modes) {
      TC_ASSIGN(seconds[mode], search_all(mode, costs[mode]));
    }
    runs.push_back(seconds);
  }
  summarize_runs(runs, costs);
  for (auto& server : servers_) TC_CHECK(server->talk().say("end"));
  return {};
}

}  // namespace

Result<GraphResult> run_graph(const GraphOptions& options) {
  GraphBench bench(options);
  if (auto ran = bench.run(); !ran) return fail(bench.explain(std::move(ran).error()));
  return bench.take();
}

}  // namespace tc::bench
