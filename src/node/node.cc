// SPDX-License-Identifier: Apache-2.0
//
// A node's life: starting, registering, calling.
#include "node/node.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log_sink.h"
#include "base/random.h"
#include "node/bootstrap/advertise.h"
#include "target/source_code.h"

namespace tc::node {

namespace {

// Between two looks for room while the last messages leave: room that a peer makes in memory wakes nobody.
constexpr uint64_t room_gap_ns = 200'000;

uint64_t random_instance() { return random_number() | 1; }  // never 0

std::shared_ptr<spdlog::logger> make_logger(const Config& config) {
  spdlog::sink_ptr sink;
  if (config.log_sink)
    sink = std::make_shared<FunctionSink>(config.log_sink);
  else
    sink = std::make_shared<LogSink>(STDERR_FILENO);
  auto logger = std::make_shared<spdlog::logger>(config.name, std::move(sink));
  logger->set_level(config.log == "off" ? spdlog::level::off : spdlog::level::from_str(config.log));
  logger->set_error_handler([](const std::string&) {});  // a line for which there is no memory
  logger->set_pattern("%H:%M:%S.%e %n %^%l%$: %v");
  return logger;
}

}  // namespace

Node::Node(Config config)
    : config_(std::move(config)),
      self_{.instance = random_instance(), .id = config_.id, .name = config_.name, .cluster = config_.cluster},
      log_(make_logger(config_)),
      buffers_(BufferPool::create(config_.message_memory)),
      registry_(config_.path),
      sent_code_(config_.source_budget),
      peer_failures_(links_, futures_, self_, *log_,
                     [this](ShowCall show) {
                       links_.each_waiting_call(show);
                       local_calls_.each_waiting(show);
                       answers_.each_pending(show);
                     }),
      link_services_{
          .channel = {*this, work_, *buffers_, link_ids_, self_, *log_},
          .config = config_,
          .authority = authority_,
          .executor = executor_,
          .answers = answers_,
          .code = known_code_,
          .loader = loader_,
          .slices = slices_,
          .compile_requests = compile_requests_,
          .compiles_for_peers = compiles_for_peers_,
          .peer_failures = peer_failures_,
          .counters = counters_,
      },
      watchdog_(
          executor_, config_.execution_limit_ms,
          [this](const std::string& ifunc, uint64_t running_ms) { report_stuck(ifunc, running_ms); },
          [this](const std::string& why) {
            log_->warn("{}: execution-limit is not watched: no thread can be had: {}", self_.label, why);
          }) {
  self_.label = make_label();
}

Node::~Node() {
  futures_.fail_all(Error{TC_ERR_CLOSED, "this node was closed"});
  if (transport_ != nullptr) leave();
}

// Messages that were accepted leave first. Nothing that comes runs any more: the application may have freed what it would
// use.
void Node::leave() noexcept {
  polling_ = true;  // nobody waits for anything any more
  links_.stop_receiving();
  transport::ClosingTime time(now_ns(), links_.unsent());
  try {
    while (links_.unsent() != 0 && !time.is_over(now_ns(), [this] { return links_.unsent(); })) {
      transport_->progress();
      links_.send_unsent();
      transport_->sleep(Deadline::at_ns(now_ns() + room_gap_ns));
    }
  } catch (const std::bad_alloc&) {  // the rest is told as lost
  }
  links_.close_all();
  transport_->finish();
}

std::string Node::make_label() const {
  if (self_.wire_id() == Identity::no_id) return fmt::format("node {}", self_.name);
  return fmt::format("node {} ({})", self_.id, self_.name);
}

Result<std::unique_ptr<Node>> Node::create(Config config, const MakeTransport& make_transport) {
  std::unique_ptr<Node> node(new Node(std::move(config)));
  TC_CHECK(node->start(make_transport));
  return node;
}

// ---- Starting

Status Node::start(const MakeTransport& make_transport) {
  TC_CHECK(check_cluster());
  TC_CHECK(authority_.start());
  TC_ASSIGN(bootstrap_, bootstrap::make(config_.bootstrap));
  if (bootstrap_ != nullptr && config_.listen.empty())
    return fail(TC_ERR_INVALID, "bootstrap is set when listen is none: this node has no address to publish");
  TC_CHECK(choose_key());
  TC_CHECK(start_store());
  TC_CHECK(compiles_for_peers_.start([this] { transport_->wake(); }));
  TC_ASSIGN(transport_, make_transport(config_, links_));
  links_.use(*transport_);
  if (!config_.listen.empty()) {
    TC_ASSIGN(const auto bound, transport_->listen(config_.listen));
    TC_ASSIGN(self_.address, bootstrap::advertised_address(bound, config_.advertise));
  }
  TC_CHECK(join_cluster());
  authority_.use_keys(config_.network.key.get());
  invocation_.begin();
  return {};
}

Status Node::start_store() {
  for (const auto& library : config_.allowed_libraries) policy_.allow_library(library);
  for (const auto& rule : config_.allowed_exports) TC_CHECK(policy_.allow_export(rule));
  auto options = config_.code;
  options.warn = [log = log_](const std::string& what) { log->warn("{}", what); };
  TC_ASSIGN(store_,
            target::CodeStore::create(std::move(options), policy_, [this](target::Code& code) { forget_code(code); }));
  return config_.warm_up ? store_->warm_up() : Status{};
}

Status Node::check_cluster() const {
  if (config_.cluster.empty()) return {};
  if (config_.bootstrap.kind != bootstrap::Kind::none)
    return fail(TC_ERR_INVALID, "both cluster and bootstrap are set: each says who the nodes are, so leave one out");
  if (config_.id >= config_.cluster.size())
    return fail(TC_ERR_INVALID, "this node has id {} when its cluster has nodes 0 to {}", config_.id,
                config_.cluster.size() - 1);
  return {};
}

// Nodes that meet need no key of their users': without one, each makes a key for this process, and the others learn it from
// whoever brings them together. With one, the user's other programs are let in as well.
Status Node::choose_key() {
  TC_ASSIGN(config_.network.key, authority_.find_key());
  if (bootstrap_ == nullptr || config_.network.key != nullptr) return {};
  TC_ASSIGN(auto fresh, trust::KeyPair::fresh());
  config_.network.key = std::make_shared<const trust::KeyPair>(std::move(fresh));
  return {};
}

// Addresses and keys only. Peers that are quicker and connect already wait in the listener's queue.
Status Node::join_cluster() {
  if (bootstrap_ == nullptr) return {};
  const auto id = config_.id_is_set ? std::optional(config_.id) : std::nullopt;
  const auto deadline = Deadline::after_ms(config_.bootstrap.timeout_ms);
  const bootstrap::Contact self{.address = self_.address, .key = config_.network.key->public_key()};
  TC_ASSIGN(auto cluster, bootstrap_->meet(self, id, deadline));
  self_.id = cluster.id;
  self_.cluster = std::move(cluster.addresses);
  self_.cluster_keys = std::move(cluster.keys);
  self_.label = make_label();
  log_->info("{} of {} at {}", self_.label, self_.cluster.size(), self_.address);
  return {};
}

const std::string& Node::address_of(uint32_t number) const noexcept {
  static const std::string none;
  return number < self_.cluster.size() ? self_.cluster[number] : none;
}

// ---- Registering and calling

Result<std::shared_ptr<source::Ifunc>> Node::register_file(const std::string& name) {
  TC_ASSIGN(const auto file, registry_.find_file(name));
  TC_ASSIGN(const auto bytes, read_file(file, BundleLimits::bundle_bytes));
  auto bundle = Bundle::read(bytes);
  if (!bundle) return context(file.string(), std::move(bundle).error());
  return register_bundle(std::move(*bundle));
}

Result<std::shared_ptr<source::Ifunc>> Node::register_bundle(Bundle bundle) {
  const bool has_new_signatures = known_code_.add_signatures(bundle);
  auto ifunc = registry_.add(std::move(bundle));
  if (has_new_signatures) links_.send_again(ifunc->bundle.id());
  const auto& manifest = ifunc->bundle.manifest();
  if (!source::has_payload_functions(manifest) || ifunc->functions.keep_alive != nullptr) return ifunc;
  auto loaded = target::SourceCode::load(ifunc->bundle);
  if (!loaded) {
    registry_.remove(ifunc);
    return context(fmt::format("payload functions of '{}'", manifest.name), std::move(loaded).error());
  }
  const std::shared_ptr<target::SourceCode> code = std::move(*loaded);
  const auto address_of = [&](const char* name) { return code->symbol(name); };
  ifunc->functions = source::bind_payload_functions(manifest, code, address_of);
  return ifunc;
}

Result<Link*> Node::connect(std::string_view address, Deadline deadline) {
  TC_CHECK(can_wait_for("a connection"));
  return links_.connect(address, deadline);
}

Status Node::close(Link& link, Deadline deadline) { return links_.close(link, deadline); }

namespace {
OutgoingCall call_of(const source::Message& message) {
  return {.bundle = &message.ifunc()->bundle, .index = message.index(), .payload = {message.payload(), message.size()}};
}
}  // namespace

Status Node::send(Link& link, const source::Message& message, bool with_code, Deadline deadline) {
  const Link::Hold hold(link);
  auto call = call_of(message);
  call.with_code = with_code;
  return link.sender().send(call, deadline);
}

Result<std::shared_ptr<Future>> Node::call(Link& link, const source::Message& message, uint32_t deadline_ms,
                                           Deadline room) {
  if (closing_) return fail(TC_ERR_CLOSED, "this node is being closed");
  auto future = std::make_shared<Future>();
  future->deadline_ns = deadline_ms != 0 ? now_ns() + uint64_t{deadline_ms} * 1'000'000 : 0;
  future->ifunc = message.ifunc();
  future->peer = link.channel().shared_label();
  const wire::CallHeader header{.token = futures_.add(future, link.futures),
                                .deadline_ms = deadline_ms,
                                .hops_left = config_.hops,
                                .fanout_left = config_.fanout};
  work_.awaits_answers = true;
  const Link::Hold hold(link);
  auto call = call_of(message);
  call.header = &header;
  if (auto sent = link.sender().send(call, room); !sent) {
    futures_.forget(*future);
    return fail(std::move(sent).error());
  }
  futures_.set_sent(*future);
  return future;
}

// ---- What the parts tell

// The store is about to free it.
void Node::forget_code(const target::Code& code) {
  links_.forget(code);
  watchdog_.forget(code);
  slices_.forget(code.id());
  known_code_.forget(code);
  code_shares_.forget(code);
}

Status Node::reload_keys() {
  TC_CHECK(authority_.reload());
  wake();
  return {};
}

// Not while an ifunc runs: code goes and links end.
void Node::renew_rights() {
  if (executor_.inside_call()) return;
  const auto lost = authority_.take_change();
  for (const auto& key : lost) code_shares_.evict_all_of(key);
  links_.renew_rights(lost);
}

// From the watchdog's thread.
void Node::report_stuck(const std::string& ifunc, uint64_t running_ms) {
  log_->error(
      "{}: ifunc '{}' has been running for {} ms when execution-limit is {} ms; code inside this process cannot be "
      "stopped, and nothing else runs here until it returns",
      self_.label, ifunc, running_ms, config_.execution_limit_ms);
  stuck_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tc::node
