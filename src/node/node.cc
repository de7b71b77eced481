// SPDX-License-Identifier: Apache-2.0
//
// Life: starting, registering, calling. Then polling and waiting, in the program's own event loop too.
#include "node/node.h"

#include <sched.h>
#include <spdlog/logger.h>
#include <spdlog/spdlog.h>
#include <threechains/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/log_format.h"
#include "base/log_sink.h"
#include "base/random.h"
#include "node/bootstrap/advertise.h"
#include "node/ended_nodes.h"
#include "target/payload_code.h"

namespace tc::node {

namespace {

// While answers are awaited a wait is cut into pieces, so that deadlines of futures are looked after while nothing comes.
constexpr uint64_t longest_sleep_ns = 50'000'000;
constexpr uint64_t expiry_step_ns = 1'000'000;
// A sender without room: how often it polls before it yields the CPU, how often before it sleeps, and how long.
constexpr uint32_t polls_before_yield = 16;
constexpr uint32_t polls_before_sleep = 4096;
constexpr uint64_t sleep_ns = 200'000;
// Polls without progress while neither the transport nor a backlog is urgent, and progresses between housekeeping.
constexpr uint32_t polls_between_progress = 16;
constexpr uint32_t progresses_between_housekeeping = 64;
// Polls of memory between two readings of the clock; a poll that asks the system is worth one by itself.
constexpr uint32_t polls_of_memory = 16;

// Also when memory runs out in between.
class Raised {
 public:
  explicit Raised(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

Deadline piece_of(Deadline deadline) noexcept {
  return Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + longest_sleep_ns));
}

// For calls on other threads that have data which the application takes back.
constexpr uint32_t longest_wait_for_calls_ms = 10'000;
// Between two looks for room while the last messages leave: room that a peer makes in memory wakes nobody.
constexpr uint64_t room_gap_ns = 200'000;

uint64_t random_instance() { return random_number() | 1; }  // never 0

LogFormat format_of_log(const Config& config) {
  return log_format_of(config.log_format, STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
}

spdlog::level::level_enum level_of(const std::string& log) {
  return log == "off" ? spdlog::level::off : spdlog::level::from_str(log);
}

std::shared_ptr<spdlog::logger> make_logger(const Config& config) {
  spdlog::sink_ptr sink;
  if (config.log_sink)
    sink = std::make_shared<FunctionSink>(config.log_sink);
  else
    sink = std::make_shared<LogSink>(STDERR_FILENO);
  auto logger = std::make_shared<spdlog::logger>(config.name, std::move(sink));
  logger->set_level(level_of(config.log));
  logger->set_error_handler([](const std::string&) {});  // a line for which there is no memory
  if (!config.log_sink) logger->set_formatter(std::make_unique<LogFormatter>(format_of_log(config)));
  return logger;
}

}  // namespace

Node::Node(Config config)
    : config_(std::move(config)),
      self_{.instance = random_instance(), .id = config_.id, .name = config_.name, .cluster = config_.cluster},
      log_(make_logger(config_)),
      buffers_(BufferPool::create(config_.message_memory)),
      peer_failures_(common_, links_, futures_,
                     [this](ShowCall show) {
                       links_.each_waiting_call(show);
                       local_calls_.each_waiting(show);
                       answers_.each_pending(show);
                       handed_.each_call(show);
                     }),
      link_services_{
          .channel = {common_, *this, link_ids_},
          .authority = authority_,
          .executor = executor_,
          .answers = answers_,
          .code = code_,
          .peer_failures = peer_failures_,
          .places = places_,
          .report = [this] { return report(); },
      },
      watchdog_(
          executor_, workers_.executors(), config_.execution_limit_ms,
          [this](const std::string& ifunc, uint64_t running_ms) { report_stuck(ifunc, running_ms); },
          [this](const std::string& why) {
            log_->warn("{}: execution-limit is not watched: no thread can be had: {}", self_.label, why);
          }) {
  self_.label = make_label();
  config_.code.node = &invocation_;
}

Node::~Node() {
  futures_.fail_all(error_in_any_case(TC_ERR_CLOSED, "this node was closed"));
  polling_ = true;  // nobody waits for anything any more, nor does a call of a peer run
  cells_.close();
  workers_.close();
  call_log_.tell_left_out();
  if (transport_ != nullptr) leave();
}

// Messages that were accepted leave first. Nothing that comes runs any more: the application may have freed what it would
// use.
void Node::leave() noexcept {
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
  TC_CHECK(code_.codes.start([this](const target::Code& code) { watchdog_.watch(code); },
                             [this](target::Code& code) { forget_code(code); }));
  TC_CHECK(code_.compiles_for_peers.start([this] { transport_->wake(); }));
  TC_ASSIGN(transport_, make_transport(config_, links_));
  links_.use(*transport_);
  executor_.slice().use(*transport_);
  if (!config_.listen.empty()) {
    TC_ASSIGN(const auto bound, transport_->listen(config_.listen));
    TC_ASSIGN(self_.address, bootstrap::advertised_address(bound, config_.advertise));
  }
  TC_CHECK(join_cluster());
  authority_.use_keys(config_.network.key.get());
  invocation_.begin();
  if (config_.last_words) have_last_words();
  TC_CHECK(workers_.start(*transport_));
  local_calls_.use(places_);
  TC_CHECK(cells_.start(*transport_));
  return {};
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
// the launcher that brings them together. With one, the user's other programs are let in as well.
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

void Node::have_last_words() {
  self_.last_words = take_last_words(self_.address, config_.listen);
  if (!self_.last_words.empty()) log_->warn("{}: of the node that was here before: {}", self_.label, self_.last_words);
  last_words_.emplace(config_.log == "off" ? "" : config_.name, format_of_log(config_), self_.label,
                      last_words_file(self_.address));
  invocation_.use(*last_words_);
}

const std::string& Node::address_of(uint32_t number) const noexcept {
  static const std::string none;
  return number < self_.cluster.size() ? self_.cluster[number] : none;
}

// ---- Registering and calling

Result<std::shared_ptr<source::Ifunc>> Node::register_file(const std::string& name) {
  TC_ASSIGN(const auto file, registry().find_file(name));
  TC_ASSIGN(const auto bytes, read_file(file, BundleLimits::bundle_bytes));
  auto bundle = Bundle::read(bytes);
  if (!bundle) return context(file.string(), std::move(bundle).error());
  return register_bundle(std::move(*bundle));
}

Result<std::shared_ptr<source::Ifunc>> Node::register_bundle(Bundle bundle) {
  const bool has_new_signatures = code_.codes.add_signatures(bundle);
  auto ifunc = registry().add(std::move(bundle));
  if (has_new_signatures) links_.send_again(ifunc->bundle.id());
  const auto& manifest = ifunc->bundle.manifest();
  if (!source::has_payload_functions(manifest) || ifunc->functions.keep_alive != nullptr) return ifunc;
  auto loaded = target::PayloadCode::load(ifunc->bundle);
  if (!loaded) {
    registry().remove(ifunc);
    return context(fmt::format("payload functions of '{}'", manifest.name), std::move(loaded).error());
  }
  const std::shared_ptr<target::PayloadCode> code = std::move(*loaded);
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

Result<std::shared_ptr<Future>> Node::call(Link& link, const source::Message& message, uint32_t answer_ms,
                                           Deadline deadline) {
  if (closing_) return fail(TC_ERR_CLOSED, "this node is being closed");
  auto future = std::make_shared<Future>();
  future->deadline_ns = answer_ms != 0 ? now_ns() + uint64_t{answer_ms} * 1'000'000 : 0;
  future->ifunc = message.ifunc();
  future->peer = link.channel().shared_label();
  future->link = link.id();
  const wire::CallHeader header{.token = futures_.add(future, link.futures),
                                .deadline_ms = answer_ms,
                                .hops_left = config_.hops,
                                .fanout_left = config_.fanout};
  work_.awaits_answers = true;
  const Link::Hold hold(link);
  auto call = call_of(message);
  call.header = &header;
  TC_CHECK(or_forget(*future, [&] { return link.sender().send(call, deadline); }));
  futures_.set_sent(*future);
  return future;
}

Result<std::shared_ptr<Future>> Node::ask_statistics(Link& link, uint32_t answer_ms) {
  if (closing_) return fail(TC_ERR_CLOSED, "this node is being closed");
  auto future = std::make_shared<Future>();
  future->deadline_ns = answer_ms != 0 ? now_ns() + uint64_t{answer_ms} * 1'000'000 : 0;
  future->peer = link.channel().shared_label();
  work_.awaits_answers = true;
  const auto token = futures_.add(future, link.futures);
  TC_CHECK(or_forget(*future, [&] { return link.ask_statistics(token); }));
  return future;
}

void Node::cancel(Future& future) noexcept {
  futures_.cancel(future);
  links_.each([&](Link& link) {
    if (link.id() == future.link) link.cancel_call(future.token);
  });
}

// Nobody waits for what was not sent, be it for lack of memory.
Status Node::or_forget(Future& future, FunctionRef<Status()> send) try {
  auto sent = send();
  if (!sent) futures_.forget(future);
  return sent;
} catch (const std::bad_alloc&) {
  futures_.forget(future);
  throw;
}

Status Node::expose(std::string name, void* data, size_t size, SharedFile file) {
  auto old = find(*invocation_.exposed(), name);
  const bool is_replaced = old != nullptr && (old->data != data || old->size > size);
  invocation_.expose(name, data, size, std::move(file));
  if (is_replaced) withdrawn_.push_back(std::move(old));
  const auto nobody_has_it = [&] {
    std::erase_if(withdrawn_, [](const auto& one) { return one.use_count() == 1; });
    return std::ranges::find(withdrawn_, name, [](const auto& one) -> auto& { return one->name; }) == withdrawn_.end();
  };
  if (nobody_has_it()) return {};
  const bool may_wait = !polling_ && !executor_.inside_call();
  if (may_wait && wait_until(Deadline::after_ms(longest_wait_for_calls_ms), nobody_has_it)) return {};
  return fail(TC_ERR_BUSY,
              "calls that run on other threads still have the data '{}': keep its memory until they have ended", name);
}

// ---- The end

Status Node::drain() {
  if (places_.takes_calls()) {
    places_.take_no_more();
    links_.drain();
    log_->info("{} is draining: it takes no more calls", self_.label);
  }
  const auto left = calls_left();
  if (left == 0) return {};
  return fail(TC_ERR_BUSY, "{} call{} run{} or wait{} here still", left, left == 1 ? "" : "s", left == 1 ? "s" : "",
              left == 1 ? "s" : "");
}

// What calls ask of this node itself belongs to them, and counts, too.
size_t Node::calls_left() const noexcept {
  return (executor_.inside_call() ? 1 : 0) + handed_.size() + local_calls_.waiting() + answers_.pending() +
         links_.waiting_calls();
}

bool Node::end_handed_calls() noexcept {
  const Raised polling(polling_);  // what a call sends meanwhile waits in the backlog
  links_.stop_receiving();
  cells_.close();
  return workers_.wait_for_calls(std::chrono::milliseconds(10));
}

// ---- Statistics

// For a thread or a cell.
size_t Node::waiting_calls() {
  size_t waiting = local_calls_.awaiting_worker() + workers_.unbegun() + cells_.waiting();
  links_.each([&](Link& link) { waiting += link.receiver().awaits_worker() ? link.receiver().waiting() : 0; });
  return waiting;
}

Numbers Node::numbers() {
  const auto traffic = links_.traffic();
  const auto store = code_.codes.store().stats();
  return {
      .executed = executed(),
      .failures = counters_.failures.all(),
      .stuck = reports_of_stuck_calls(),
      .waiting_calls = waiting_calls(),
      .cell_calls = counters_.cell_calls,
      .cell_deaths = counters_.cell_deaths,
      .cell_data_waits = counters_.cell_data_waits,
      .codes = store.codes,
      .code_bytes = store.bytes,
      .code_loads = store.loads,
      .object_loads = store.object_loads,
      .baseline_compiles = store.baseline_compiles,
      .tuned = store.tuned_swaps,
      .code_evictions = store.evictions,
      .rebinds = store.rebinds,
      .retired = store.retired,
      .cache_hits = store.cache_hits,
      .load_ns = counters_.load_ns,
      .first_execution_ns = counters_.first_execution_ns,
      .links = links_.size(),
      .dropped_links = counters_.dropped_links,
      .handshakes = counters_.handshakes.count(),
      .refused_peers = counters_.refused_peers,
      .denied_codes = counters_.denied_codes,
      .throttled = counters_.throttled,
      .late_answers = counters_.late_answers,
      .received_bytes = traffic.received,
      .sent_bytes = traffic.sent,
      .waiting_bytes = buffers_->budget().used(),
      .code_bytes_sent = counters_.code_bytes_sent,
      .needs = counters_.needs,
      .slice_requests = counters_.slice_requests,
      .compile_requests = counters_.compile_requests,
      .compiled_for_others = counters_.compiled_for_others,
  };
}

// Also while calls run on other threads and in cells. A call on this thread holds the answer up.
wire::NodeReport Node::report() {
  wire::NodeReport report{
      .name = self_.name,
      .version = fmt::format("{}.{}.{}", TC_VERSION_MAJOR, TC_VERSION_MINOR, TC_VERSION_PATCH),
      .running = running_ifunc().value_or(cells_.running_name()),
      .node_id = self_.wire_id(),
      .uptime_ns = now_ns() - started_ns_,
      .is_draining = closing_ || !places_.takes_calls(),
      .numbers = {},
      .failures = counters_.failures.by_reason(),
      .times = {{"load", counters_.loads}, {"handshake", counters_.handshakes}},
      .ifuncs = code_.codes.uses(),
      .links = links_.report(),
  };
  const auto now = numbers();
  for (const auto& known : statistics()) report.numbers.emplace_back(known.name, now.*known.number);
  report.keep_busiest(wire::most_ifuncs);
  return report;
}

Result<uint64_t> Node::stat(std::string_view name) {
  std::string names;
  for (const auto& known : statistics()) {
    if (known.name == name) return numbers().*known.number;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return fail(TC_ERR_NOT_FOUND, "there is no number '{}'; there are: {}", name, names);
}

// ---- What the parts tell

// The store is about to free it.
void Node::forget_code(target::Code& code) {
  links_.forget(code);
  executor_.forget(code);
  watchdog_.forget(code);
  code_.forget(code);
}

Status Node::reload_keys() {
  TC_CHECK(authority_.reload());
  wake();
  return {};
}

Status Node::set_log_level(std::string_view level) {
  Config tried;
  TC_CHECK(tried.set("log", level));
  log_->set_level(level_of(tried.log));
  return {};
}

// Not while an ifunc runs: code goes and links end.
void Node::renew_rights() {
  if (executor_.inside_call()) return;
  const auto lost = authority_.take_change();
  for (const auto& key : lost) code_.codes.evict_all_of(key);
  links_.renew_rights(lost);
  cells_.renew_rights();
  if (!handed_.empty()) workers_.renew_rights();
}

// From the watchdog's thread.
void Node::report_stuck(const std::string& ifunc, uint64_t running_ms) {
  const LogContext about({.ifunc = ifunc});
  log_->error(
      "{}: ifunc '{}' has been running for {} ms when execution-limit is {} ms; code inside this process cannot be "
      "stopped, and nothing else runs on its thread until it returns",
      self_.label, ifunc, running_ms, config_.execution_limit_ms);
  stuck_.fetch_add(1, std::memory_order_relaxed);
}

// ---- Polling

size_t Node::poll() {
  if (polling_) return 0;
  const Raised polling(polling_);
  auto& poll_state = transport_->poll_state;
  ++poll_state.poll_number;
  const Raised gathering(poll_state.gathering);
  size_t happened = links_.receive();
  if (work_.calls) [[unlikely]]
    happened += run_calls();
  // Behind all that may send.
  if (poll_state.urgent || work_.backlog || ++polls_ % polls_between_progress == 0) happened += progress();
  if (futures_.has_notifications()) [[unlikely]]
    notify_ready();
  return happened;
}

// Of this node to itself, on other threads and in cells.
size_t Node::run_calls() {
  size_t happened = 0;
  if (!handed_.empty() || handed_.has_freed()) happened += deliver_handed();
  if (local_calls_.has_ready()) local_calls_.run(), ++happened;
  work_.calls = !handed_.empty() || handed_.has_freed() || local_calls_.has_ready();
  return happened;
}

// Those that waited for another thread go on by turns: links, and calls of this node to itself.
size_t Node::deliver_handed() {
  auto happened = workers_.deliver() + cells_.poll();
  if (!handed_.take_freed()) return happened;
  local_calls_.on_worker_free();
  links_go_first_ = !links_go_first_;
  if (!links_go_first_ && local_calls_.has_ready()) local_calls_.run();
  return happened + links_.on_worker_free();
}

size_t Node::progress() {
  size_t moved = transport_->progress();
  if (work_.backlog) [[unlikely]]
    moved += drain_backlogs();
  if (work_.paused_links) [[unlikely]]
    moved += links_.resume_paused();
  moved += cells_.look();
  if (code_.compiles_for_peers.has_answers()) code_.compiles_for_peers.send_answers();
  const bool is_late = std::exchange(transport_->poll_state.late, false);
  if (++progresses_ % progresses_between_housekeeping == 0 || work_.lost_links || is_late) [[unlikely]]
    housekeep();
  return moved;
}

// Without memory, what is left has its turn with the next progress.
size_t Node::drain_backlogs() try {
  work_.backlog = false;
  code_.deliver();
  answers_.send_pending_failures();
  return links_.drain_backlogs();
} catch (const std::bad_alloc&) {
  work_.backlog = true;
  throw;
}

// What must be done now and then, and before sleeping.
void Node::housekeep() {
  reserve_.refill();
  code_.housekeep();
  expire();
  const auto now = now_ns();
  buffers_->trim(now);
  next_trim_ns_ = transport_->trim(now);
  if (const auto unsaid = links_.take_unsaid_refusals(); unsaid != 0)
    log_->warn("{} more were refused in a second", unsaid);
  if (authority_.has_changed()) renew_rights();
  if (authority_.is_use_due()) links_.record_uses();
  links_.end_unused();
  if (work_.unfinished) links_.expire_unfinished(now);
  if (now >= call_log_.due_ns()) call_log_.tell_left_out();
  links_.handle_losses();
}

void Node::expire() {
  if (!work_.awaits_answers) return;
  if (const auto now = now_ns(); now >= next_expiry_ns_) {
    next_expiry_ns_ = now + expiry_step_ns;
    futures_.expire(now);
    peer_failures_.tick();
    work_.awaits_answers = !futures_.empty();
    if (futures_.has_notifications() && !polling_) {
      const Raised polling(polling_);
      notify_ready();
    }
  }
}

// With polling_ raised: the functions may call the node, but nothing runs meanwhile.
void Node::notify_ready() noexcept {
  const Raised notifying(notifying_);
  futures_.notify_ready();
}

void Node::close_calls() noexcept {
  closing_ = true;
  futures_.fail_all(error_in_any_case(TC_ERR_CLOSED, "this node was closed"));
  if (polling_) return;  // what polls tells them
  const Raised polling(polling_);
  notify_ready();
}

Status Node::can_wait_for(std::string_view what) const {
  if (executor_.inside_call()) return fail(TC_ERR_INVALID, "an ifunc that runs cannot wait for {}", what);
  if (notifying_) return fail(TC_ERR_INVALID, "a function that a future calls when ready cannot wait for {}", what);
  return {};
}

// ---- Waiting

size_t Node::wait_by(transport::WaitPolicy policy) {
  using Next = transport::WaitPolicy::Next;
  if (polling_) return 0;
  while (true) {
    const bool asks_system = transport_->poll_state.urgent;
    for (uint32_t i = 0; i < (asks_system ? 1 : polls_of_memory); ++i)
      if (const auto happened = poll(); happened != 0) return happened;
    switch (policy.after_empty_poll(asks_system)) {
      case Next::poll: break;
      case Next::block: return block(policy.deadline());
      case Next::give_up: return 0;
    }
  }
}

size_t Node::wait(Deadline deadline, const std::atomic<int>* make_way) {
  return wait_by(transport::WaitPolicy::until(core_, deadline, make_way));
}

size_t Node::wait_ms(uint32_t timeout_ms) {
  return wait_by(transport::WaitPolicy::for_ns(core_, uint64_t{timeout_ms} * 1'000'000));
}

// Everything that is due is done before, so that only what comes can be missed, and the transport looks for that.
size_t Node::block(Deadline deadline) {
  housekeep();
  if (const auto happened = poll(); happened != 0) return happened;
  const auto until = latest_end_of_sleep(deadline.at_ns());
  const auto before = executed();
  {
    const Raised polling(polling_);
    const Raised gathering(transport_->poll_state.gathering);
    cells_.set_sleeping(true);
    if (!cells_.has_frames()) transport_->sleep(Deadline::at_ns(until));
    cells_.set_sleeping(false);
  }
  links_.handle_losses();
  return poll() + static_cast<size_t>(executed() - before);
}

// Events end a sleep; this is for what no event announces.
uint64_t Node::latest_end_of_sleep(uint64_t until) const noexcept {
  if (work_.backlog)
    until = std::min(until, now_ns() + expiry_step_ns);  // room that a peer makes in memory wakes nobody
  if (work_.awaits_answers || work_.unfinished) until = std::min(until, now_ns() + longest_sleep_ns);
  if (work_.paused_links) until = std::min(until, links_.next_resume_ns());
  until = std::min({until, authority_.next_change_ns(), cells_.next_due_ns(), call_log_.due_ns(), next_trim_ns_});
  return until;
}

bool Node::wait_until(Deadline deadline, FunctionRef<bool()> done) {
  while (!done()) {
    if (deadline.passed()) return done();
    if (pause_ && !polling_)
      pause_(piece_of(deadline));
    else if (wait(piece_of(deadline)) == 0)
      expire();
  }
  return true;
}

bool Node::wait_for_room(Deadline deadline, FunctionRef<bool()> done) {
  for (uint32_t polls = 1; !done(); ++polls) {
    poll();
    if (polls % polls_before_yield == 0 && !yield(deadline, polls)) return done();
  }
  return true;
}

// False when the deadline has passed.
bool Node::yield(Deadline deadline, uint32_t polls) {
  if (deadline.passed()) return false;
  if (pause_ && !polling_) {
    pause_(Deadline::at_ns(polls < polls_before_sleep ? 0 : std::min(deadline.at_ns(), now_ns() + sleep_ns)));
  } else if (polls < polls_before_sleep) {
    ::sched_yield();
  } else if (!polling_) {
    const Raised polling(polling_);
    transport_->sleep(Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + sleep_ns)));
  }
  expire();
  return true;
}

// As before a sleep of our own (Node::block): everything that is due is done, so that only what comes can be missed. A
// future that ended of itself is something that happened: the program looks at it before it waits.
bool Node::arm(Deadline& deadline) {
  if (polling_) return false;
  const auto settled = futures_.settled();
  housekeep();
  if (poll() != 0 || futures_.settled() != settled || local_calls_.has_ready()) return false;
  auto until = latest_end_of_sleep(deadline.at_ns());
  // The table remembers deadlines of calls that have their answer; it is asked while one waits.
  if (const auto next = futures_.next_deadline_ns(); next != 0 && !futures_.empty())
    until = std::min(until, std::max(next, next_expiry_ns_));
  deadline = Deadline::at_ns(until);
  cells_.set_sleeping(true);  // it rings once; nothing is lost when nobody sleeps
  return !cells_.has_frames() && transport_->arm(deadline);
}

}  // namespace tc::node
