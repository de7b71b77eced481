// SPDX-License-Identifier: Apache-2.0
//
// A node's life and its polling.
#include "node/node.h"

#include <sched.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>

#include "base/hot_page.h"
#include "node/bootstrap/advertise.h"

namespace tc::node {

namespace {

// Of who serves, and comes back to nobody: messages between looks at the clock.
constexpr uint32_t messages_between_clocks = 16;
// A wait is cut into pieces, so that deadlines of futures are looked after while nothing comes.
constexpr uint64_t longest_sleep_ns = 50'000'000;
constexpr uint64_t expiry_step_ns = 1'000'000;
// Marks of routes begin anew behind it, far from where they would wrap.
constexpr uint32_t last_route_mark = UINT32_MAX / 2;
// A sender without room: how often it looks before it naps between looks, and how long.
constexpr uint32_t looks_before_nap = 4096;
constexpr uint64_t nap_ns = 200'000;
// Polls without progress while the transport has nothing urgent, and progresses between housekeeping.
constexpr uint32_t polls_between_progress = 16;
constexpr uint32_t progresses_between_tending = 64;
// Where nearly every message ends a sleep, not before each of them but at the end of a longer one: a timer that is due
// before the system's next tick costs a virtual machine half as much as a hop (docs/transport.md, "Sleep").
constexpr uint64_t tending_gap_ns = 10'000'000;
constexpr uint64_t nap_before_tending_ns = 50'000'000;
// The same for what is to be done for each link where peers send messages: their room suffices without small news, and
// greetings have seconds.
constexpr uint64_t link_tending_gap_ns = 500'000'000;

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
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(config.name, std::move(sink));
  logger->set_level(config.log == "off" ? spdlog::level::off : spdlog::level::from_str(config.log));
  logger->set_pattern("%H:%M:%S.%e %n %^%l%$: %v");
  return logger;
}

}  // namespace

Node::Node(Config config)
    : executor_(*this),
      config_(std::move(config)),
      log_(make_logger(config_)),
      instance_(random_instance()),
      registry_(config_.path) {
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
    forget_hops();
    for (auto& link : links_) link->forget(code);
    forget_code(code);
  };
  TC_ASSIGN(store_, target::CodeStore::create(config_.code, policy_, forget));
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
  for (auto& link : links_) link->say_goodbye();
  // Goodbyes leave with the next rounds of progress; nobody is waited for.
  for (int round = 0; round < 64; ++round) transport_->progress();
  links_.clear();
}

Deadline Node::slice_of(Deadline deadline) noexcept {
  return Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + longest_sleep_ns));
}

[[gnu::hot]] size_t Node::poll() {
  if (polling_) return 0;
  const Raised polling(polling_);
  ++transport_->pulse.turn;
  size_t happened = 0;
  const auto& pulse = transport_->pulse;
  // What came while falling asleep, or waking, need not wait for another round through UCX. Else frames come after it,
  // so that what it took in runs before we return.
  if (pulse.arrivals == arrivals_seen_ && (pulse.urgent || ++polls_ % polls_between_progress == 0))
    happened = progress();
  if (happened != 0 || pulse.direct || pulse.arrivals != arrivals_seen_ || look_at_all_) happened += receive();
  happened += std::exchange(ran_at_once_, 0);
  if (!local_calls_.empty()) [[unlikely]]
    run_local_calls();
  return happened;
}

// Links lie far apart in memory, and with more nodes than cores they are cold in every poll: only those are touched
// that may have something.
[[gnu::hot]] size_t Node::receive() {
  auto& pulse = transport_->pulse;
  // A lone frame's sends are not held back: it may run for long.
  lone_traffic_ = std::exchange(arrivals_seen_, pulse.arrivals) + 1 >= pulse.arrivals;
  pulse.gathering = !lone_traffic_;
  size_t taken = 0;
  if (pulse.direct || look_at_all_)
    taken = receive_from_all();
  else if (transport_->came.size() != 0)
    taken = receive_from_few();
  if (std::exchange(pulse.gathering, false)) transport_->flush();
  return taken;
}

size_t Node::receive_from_all() {
  size_t taken = 0;
  transport_->came.clear();
  look_at_all_ = false;
  // By index: a running ifunc may add links.
  for (size_t i = 0; i < links_.size(); ++i)
    if (links_[i]->has_frame()) taken += receive_from(*links_[i]);
  look_at_all_ |= taken != 0;
  return taken;
}

[[gnu::hot]] size_t Node::receive_from_few() {
  auto& came = transport_->came;
  size_t taken = 0;
  for (size_t i = 0; i < came.size() && !came.from_anybody(); ++i) {
    auto* const link = static_cast<Link*>(came[i]->owner());
    if (link == nullptr) continue;
    const auto frames = receive_from(*link);
    if (frames != 0 && link->has_frame()) look_at_all_ = true;  // its turn was over before its frames
    taken += frames;
  }
  if (came.from_anybody()) look_at_all_ = true;
  came.clear();
  return taken;
}

// Gives the memory of frames that were run back to their senders.
[[gnu::hot]] void Node::settle_links() {
  if (auto* const link = std::exchange(unsettled_link_, nullptr)) link->settle();
  if (!std::exchange(unsettled_links_, false)) return;
  for (const auto& link : links_) link->settle();
}

[[gnu::hot]] size_t Node::progress() {
  settle_links();
  const size_t moved = running_lone_calls([](auto& transport) { return transport.progress(); });
  if (backlog_) [[unlikely]]
    drain_backlogs();
  if (compiles_ && compile_service_->has_done()) answer_compiled();
  if (++progresses_ % progresses_between_tending == 0 || links_lost_) [[unlikely]]
    tend();
  return moved;
}

[[gnu::hot]] size_t Node::receive_from(Link& link) {
  if (!link.readable()) return 0;
  before_calls();
  const target::Executor::Scope scope(executor_);
  const auto taken = link.receive();
  if (taken != 0) {
    const auto* const before = std::exchange(unsettled_link_, &link);
    unsettled_links_ |= before != nullptr && before != &link;
  }
  return taken;
}

// Whether, until a message comes or somebody calls us, there is nothing to do here.
bool Node::can_only_get_messages() const noexcept {
  return !transport_->pulse.direct && !look_at_all_ && !backlog_ && !links_lost_ && !compiles_ && lone_traffic_ &&
         unsettled_link_ == nullptr && local_calls_.empty();
}

// Of what came, nothing is left to do.
[[gnu::always_inline]] inline bool Node::all_ran_at_once() noexcept {
  if (transport_->pulse.arrivals != arrivals_seen_ + ran_at_once_ || !can_only_get_messages()) return false;
  arrivals_seen_ = transport_->pulse.arrivals;
  return true;
}

[[gnu::always_inline]] inline size_t Node::wait_for(transport::Looking looking) {
  using transport::Seen;
  if (polling_) return 0;
  looking.let_nap(tended_ns_ + tending_gap_ns, tended_ns_ + nap_before_tending_ns);
  auto seen = Seen::something;
  if (can_only_get_messages()) [[likely]] {
    seen = wait_for_messages(looking);
    // Most likely one call, which has run.
    if (seen == Seen::something && ran_at_once_ != 0 && all_ran_at_once()) [[likely]]
      return std::exchange(ran_at_once_, 0);
  }
  return wait_for_all(seen, looking);
}

// Where nothing but messages can be. What came alone has run when something was seen.
[[gnu::always_inline]] inline transport::Seen Node::wait_for_messages(transport::Looking& looking) noexcept {
  const Raised polling(polling_);
  ++transport_->pulse.turn;
  return running_lone_calls([&](auto& transport) { return transport.wait_for_messages(looking); });
}

// For anything that may happen.
[[gnu::hot]] size_t Node::wait_for_all(transport::Seen seen, transport::Looking& looking) {
  using transport::Seen;
  while (true) {
    if (seen == Seen::something) {
      // A look that asks the system costs as much as giving way to those who share our core, one into memory does not.
      const uint32_t looks = transport_->pulse.urgent ? 1 : looks_between_yields;
      for (uint32_t i = 0; i < looks; ++i)
        if (const auto happened = poll(); happened != 0) return happened;
      seen = looking.go_on(transport_->pulse.urgent);
    }
    if (seen == Seen::over) return 0;
    if (seen == Seen::too_long) return sleep_until_something(looking);
    ::sched_yield();
    seen = can_only_get_messages() ? wait_for_messages(looking) : Seen::something;
  }
}

[[gnu::hot]] size_t Node::wait(Deadline deadline, const std::atomic<int>* make_way) {
  return wait_for(transport::Looking::until(deadline, make_way));
}

[[gnu::hot]] size_t Node::wait_ms(uint32_t timeout_ms) {
  return wait_for(transport::Looking::for_ns(uint64_t{timeout_ms} * 1'000'000));
}

// Who serves need not be told of each call.
TC_ON_HOT_PAGE bool Node::goes_on() noexcept {
  if (!serves_ || awaits_answers_ || !all_ran_at_once()) return false;
  ran_at_once_ = 0;
  ++transport_->pulse.turn;
  return true;
}

[[gnu::hot]] void Node::serve(Deadline deadline) {
  if (polling_) return;
  const Raised serving(serves_);
  uint64_t unclocked = 0;
  while (!woken_.load(std::memory_order_acquire)) {  // who comes back sees what was stored before the wake
    const auto executed = executor_.executed();
    const size_t happened = wait_for(transport::Looking::until(deadline));
    unclocked += std::max<uint64_t>(happened, executor_.executed() - executed);  // goes_on() is silent of calls
    if (happened == 0 || unclocked >= messages_between_clocks) {
      if (deadline.passed()) break;
      unclocked = 0;
    }
    expire();
  }
  woken_.store(false, std::memory_order_relaxed);
}

[[gnu::hot]] size_t Node::sleep_until_something(const transport::Looking& looking) {
  const auto deadline = looking.deadline();
  // Who was woken for housekeeping alone goes on sleeping: to look first would cost an idle node a sixth of its core.
  if (looking.may_nap()) {
    const auto due = looking.nap_until();
    const bool undisturbed = sleep(due);
    const auto happened = poll();
    if (!undisturbed || happened != 0 || !due.passed() || deadline.passed()) return happened;
  }
  tend();
  if (const auto happened = poll(); happened != 0) return happened;
  sleep(deadline);
  return poll();
}

// True when time alone ended it.
[[gnu::hot]] bool Node::sleep(Deadline deadline) {
  auto until = deadline.at_ns();
  if (backlog_) until = std::min(until, now_ns() + expiry_step_ns);
  const Raised polling(polling_);
  return running_lone_calls([&](auto& transport) { return transport.sleep(Deadline::at_ns(until)); });
}

// False when the deadline has passed.
bool Node::give_others_a_turn(Deadline deadline, uint32_t looks) {
  if (deadline.passed()) return false;
  if (looks < looks_before_nap)
    ::sched_yield();
  else
    transport_->sleep(Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + nap_ns)));
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
[[gnu::hot]] void Node::tend() {
  tended_ns_ = now_ns();
  store_->tend();
  expire();
  slices_.tick();
  compile_requests_.tick();
  if (executor_.running().route_mark > last_route_mark) [[unlikely]] {  // none may come twice
    forget_hops();
    executor_.running().route_mark = 1;
  }
  if (transport_->pulse.direct || tended_ns_ - links_tended_ns_ >= link_tending_gap_ns) {
    links_tended_ns_ = tended_ns_;
    for (auto& link : links_) {
      link->give_credit(true);
      link->check_greeting();
    }
  }
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
