// SPDX-License-Identifier: Apache-2.0
//
// A node's life and its polling.
#include "node/node.h"

#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>

#include "base/log_sink.h"
#include "node/bootstrap/advertise.h"

namespace tc::node {

namespace {

// Of who serves: messages between looks at the clock.
// While answers are awaited a wait is cut into pieces, so that deadlines of futures are looked after while nothing comes.
constexpr uint64_t longest_sleep_ns = 50'000'000;
constexpr uint64_t expiry_step_ns = 1'000'000;
// A sender without room: how often it polls before it naps between polls, and how long.
constexpr uint32_t polls_before_nap = 4096;
constexpr uint64_t nap_ns = 200'000;
// Polls without progress while the transport has nothing urgent, and progresses between housekeeping.
constexpr uint32_t polls_between_progress = 16;
constexpr uint32_t progresses_between_tending = 64;
// Polls of memory between two looks at the clock; a poll that asks the system is worth one by itself.
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

uint64_t random_instance() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = now_ns();
  return number | 1;  // never 0
}

std::shared_ptr<spdlog::logger> make_logger(const Config& config) {
  auto sink = std::make_shared<LogSink>(STDERR_FILENO);
  auto logger = std::make_shared<spdlog::logger>(config.name, std::move(sink));
  logger->set_level(config.log == "off" ? spdlog::level::off : spdlog::level::from_str(config.log));
  logger->set_error_handler([](const std::string&) {});  // a line for which there is no memory
  logger->set_pattern("%H:%M:%S.%e %n %^%l%$: %v");
  return logger;
}

}  // namespace

Node::Node(Config config)
    : executor_(*this),
      config_(std::move(config)),
      log_(make_logger(config_)),
      instance_(random_instance()),
      buffers_(BufferPool::create(config_.message_memory)),
      registry_(config_.path),
      sent_code_(config_.source_budget) {
  label_ = make_label();
}

std::string Node::make_label() const {
  if (wire_id() == no_id) return fmt::format("node {}", config_.name);
  return fmt::format("node {} ({})", config_.id, config_.name);
}

Result<std::unique_ptr<Node>> Node::create(Config config, const MakeTransport& make_transport) {
  std::unique_ptr<Node> node(new Node(std::move(config)));
  TC_CHECK(node->start(make_transport));
  return node;
}

Status Node::start(const MakeTransport& make_transport) {
  TC_CHECK(check_cluster());
  TC_ASSIGN(bootstrap_, bootstrap::make(config_.bootstrap));
  if (bootstrap_ != nullptr && config_.listen.empty())
    return tc::fail(TC_ERR_INVALID, "bootstrap is set when listen is none: this node has no address to publish");
  for (const auto& library : config_.allowed_libraries) policy_.allow_library(library);
  for (const auto& rule : config_.allowed_exports) TC_CHECK(policy_.allow_export(rule));
  const auto forget = [this](target::Code& code) {
    for (auto& link : links_) link->forget(code);
    forget_code(code);
  };
  auto code_options = config_.code;
  code_options.warn = [log = log_](const std::string& what) { log->warn("{}", what); };
  TC_ASSIGN(store_, target::CodeStore::create(std::move(code_options), policy_, forget));
  if (config_.warm_up) TC_CHECK(store_->warm_up());
  TC_CHECK(start_compile_service());
  TC_ASSIGN(transport_, make_transport(config_, *this));
  if (!config_.listen.empty()) {
    TC_ASSIGN(const auto bound, transport_->listen(config_.listen));
    TC_ASSIGN(address_, bootstrap::advertised_address(bound, config_.advertise));
  }
  TC_CHECK(join_cluster());
  be_node(config_.id, std::max<uint32_t>(1, static_cast<uint32_t>(config_.cluster.size())));
  return {};
}

Status Node::start_compile_service() {
  if (config_.compile_for == CompileFor::none) return {};
  TC_ASSIGN(auto compiler, CompileService::find_compiler(config_.compiler));
  try {
    compile_service_ = std::make_unique<CompileService>(std::move(compiler), [this] { transport_->wake(); });
  } catch (const std::system_error& error) {
    return tc::fail(TC_ERR_IO, "compile-for: no thread can be had: {}", error.what());
  }
  compiles_ = true;
  return {};
}

Status Node::check_cluster() const {
  if (config_.cluster.empty()) return {};
  if (config_.bootstrap.kind != bootstrap::Kind::none)
    return tc::fail(TC_ERR_INVALID,
                    "both cluster and bootstrap are set: each says who the nodes are, so leave one out");
  if (config_.id >= config_.cluster.size())
    return tc::fail(TC_ERR_INVALID, "this node has id {} when its cluster has nodes 0 to {}", config_.id,
                    config_.cluster.size() - 1);
  return {};
}

// Addresses only. Peers that are quicker and connect already wait in the listener's queue.
Status Node::join_cluster() {
  if (bootstrap_ == nullptr) return {};
  const auto id = config_.id_is_set ? std::optional(config_.id) : std::nullopt;
  const auto deadline = Deadline::after_ms(config_.bootstrap.timeout_ms);
  TC_ASSIGN(auto cluster, bootstrap_->meet(address_, id, deadline));
  config_.id = cluster.id;
  config_.cluster = std::move(cluster.addresses);
  label_ = make_label();
  log_->info("{} of {} at {}", label_, config_.cluster.size(), address_);
  return {};
}

const std::string& Node::address_of(uint32_t number) const noexcept {
  static const std::string none;
  return number < config_.cluster.size() ? config_.cluster[number] : none;
}

Node::~Node() {
  futures_.fail_all(Error{TC_ERR_CLOSED, "this node was closed"});
  if (transport_ == nullptr) return;
  for (auto& link : links_) link->say_goodbye();  // what they say leaves with the transport's end
  links_.clear();
}

Deadline Node::slice_of(Deadline deadline) noexcept {
  return Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + longest_sleep_ns));
}

size_t Node::poll() {
  if (polling_) return 0;
  const Raised polling(polling_);
  auto& pulse = transport_->pulse;
  ++pulse.turn;
  const Raised gathering(pulse.gathering);
  size_t happened = 0;
  if (!polled_links_.empty()) happened += receive_from_polled();
  if (!pending_.empty()) [[unlikely]]
    happened += receive_from_pending();
  if (!local_calls_.empty()) [[unlikely]] {
    run_local_calls();
    ++happened;
  }
  // Behind all that may send.
  if (pulse.urgent || ++polls_ % polls_between_progress == 0) happened += progress();
  return happened;
}

size_t Node::receive_from_polled() {
  size_t happened = 0;
  // A link may open or end meanwhile.
  for (size_t i = 0; i < polled_links_.size(); ++i)
    if (auto& link = *polled_links_[i]; link.has_frame()) happened += receive_from(link);
  return happened;
}

size_t Node::receive_from_pending() {
  size_t happened = 0;
  for (auto* const link : std::exchange(pending_, {})) {
    link->is_pending = false;
    happened += receive_from(*link);
  }
  return happened;
}

void Node::come_back_to(Link& link) {
  if (link.is_pending) return;
  pending_.push_back(&link);
  link.is_pending = true;
}

// A link for whose frames there is no memory ends; the node does not.
size_t Node::receive_from(Link& link) {
  if (!link.readable()) return 0;
  before_calls();
  const target::Executor::Scope scope(executor_);
  try {
    return link.receive();
  } catch (const std::bad_alloc&) {
    executor_.reset();
    give_up(link);
    return 1;
  }
}

size_t Node::progress() {
  const size_t moved = transport_->progress();
  if (backlog_) [[unlikely]]
    drain_backlogs();
  if (compiles_ && compile_service_->has_done()) answer_compiled();
  if (++progresses_ % progresses_between_tending == 0 || links_lost_) [[unlikely]]
    tend();
  return moved;
}

size_t Node::wait_by(transport::WaitPolicy policy) {
  using Next = transport::WaitPolicy::Next;
  if (polling_) return 0;
  while (true) {
    const bool asks_system = transport_->pulse.urgent;
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
  return wait_by(transport::WaitPolicy::until(deadline, make_way));
}

size_t Node::wait_ms(uint32_t timeout_ms) {
  return wait_by(transport::WaitPolicy::for_ns(uint64_t{timeout_ms} * 1'000'000));
}

// Everything that is due is done before, so that only what comes can be missed, and the transport looks for that.
size_t Node::block(Deadline deadline) {
  tend();
  if (const auto happened = poll(); happened != 0) return happened;
  auto until = deadline.at_ns();
  if (backlog_) until = std::min(until, now_ns() + expiry_step_ns);  // room that a peer makes in memory wakes nobody
  if (awaits_answers_) until = std::min(until, now_ns() + longest_sleep_ns);
  const auto executed = executor_.executed();
  {
    const Raised polling(polling_);
    const Raised gathering(transport_->pulse.gathering);
    transport_->sleep(Deadline::at_ns(until));
  }
  return poll() + static_cast<size_t>(executor_.executed() - executed);
}

// False when the deadline has passed.
bool Node::give_others_a_turn(Deadline deadline, uint32_t polls) {
  if (deadline.passed()) return false;
  if (polls < polls_before_nap) {
    ::sched_yield();
  } else if (!polling_) {
    const Raised polling(polling_);
    transport_->sleep(Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + nap_ns)));
  }
  expire();
  return true;
}

void Node::expire() {
  if (!awaits_answers_) return;
  if (const auto now = now_ns(); now >= next_expiry_ns_) {
    next_expiry_ns_ = now + expiry_step_ns;
    futures_.expire(now);
    deaths_.tick();
    awaits_answers_ = !futures_.empty();
  }
}

void Node::drain_backlogs() {
  backlog_ = false;
  slices_.deliver();
  compile_requests_.deliver();
  if (!owed_.empty()) answer_owed();
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i]->drain_backlog();
    if (links_[i]->has_backlog()) backlog_ = true;
  }
}

// What must be done now and then, and before sleeping.
void Node::tend() {
  reserve_.refill();
  store_->tend();
  expire();
  slices_.tick();
  compile_requests_.tick();
  buffers_->trim(now_ns());
  if (const auto unsaid = refusals_.take_unsaid(now_ns()); unsaid != 0)
    log_->warn("{} more were refused in a second", unsaid);
  remove_lost_links();
}

Result<uint64_t> Node::stat(std::string_view name) const {
  const auto store = store_->stats();
  const std::map<std::string_view, uint64_t> numbers{
      {"executed", executor_.executed()},
      {"code-bytes", store.bytes},
      {"codes", store.codes},
      {"code-loads", store.loads},
      {"code-evictions", store.evictions},
      {"object-loads", store.object_loads},
      {"quick-compiles", store.quick_compiles},
      {"tuned", store.tuned_swaps},
      {"cache-hits", store.cache_hits},
      {"rebinds", store.rebinds},
      {"retired", store.retired},
      {"code-bytes-sent", counters_.code_bytes_sent},
      {"first-execution-ns", counters_.first_execution_ns},
      {"load-ns", counters_.load_ns},
      {"links", links_.size()},
      {"dropped-links", counters_.dropped_links},
      {"refused-strangers", counters_.refused_strangers},
      {"late-answers", counters_.late_answers},
      {"needs", counters_.needs},
      {"slice-requests", counters_.slice_requests},
      {"compile-requests", counters_.compile_requests},
      {"compiled-for-others", counters_.compiled_for_others},
      {"failures", counters_.failures},
      {"stuck", reports_of_stuck_calls()},
  };
  if (const auto found = numbers.find(name); found != numbers.end()) return found->second;
  std::string names;
  for (const auto& [known, value] : numbers) names += (names.empty() ? "" : ", ") + std::string(known);
  return tc::fail(TC_ERR_NOT_FOUND, "there is no number '{}'; there are: {}", name, names);
}

}  // namespace tc::node
