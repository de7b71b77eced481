// SPDX-License-Identifier: Apache-2.0
//
// A node: source and target in one (docs/architecture.md). It owns its parts, wires them together, and drives them:
//
//   Links            connections to peers; each Link has a CallSender and a CallReceiver
//   Invocation       what a running ifunc asks of the node
//   Workers          other threads, for calls that take long; Cells: processes of their own, for code that is not trusted
//   LocalCalls       calls of the node to itself
//   Answers          the outcome of a call on its way to its caller; FutureTable: calls that wait for it
//   Authority        who may do what here
//   NodeCode         code: registered, sent, loaded, compiled elsewhere, freed
//   PeerFailures     nodes that fail, and the calls that are lost with them; Watchdog: calls that run too long
//
// Thread: one at a time. Two nodes in one process do not know of each other.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/memory_reserve.h"
#include "node/authority.h"
#include "node/bootstrap/bootstrap.h"
#include "node/call_log.h"
#include "node/cells/cells.h"
#include "node/code/node_code.h"
#include "node/config.h"
#include "node/future.h"
#include "node/invocation.h"
#include "node/links.h"
#include "node/liveness/peer_failures.h"
#include "node/liveness/watchdog.h"
#include "node/local_calls.h"
#include "node/statistics.h"
#include "node/workers/call_places.h"
#include "node/workers/handed_calls.h"
#include "node/workers/workers.h"
#include "target/last_words.h"
#include "transport/closing_sockets.h"
#include "transport/wait_policy.h"

namespace tc::node {

class Node final : private Waiter {
 public:
  using MakeTransport = std::function<Result<std::unique_ptr<transport::Transport>>(const Config&, transport::Events&)>;

  static Result<std::unique_ptr<Node>> create(Config config, const MakeTransport& make_transport);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // ---- Polling and waiting

  // Runs what has come, moves what must go. Returns how much happened; 0 is "idle". Inside a running ifunc it does
  // nothing.
  size_t poll();
  // Polls until something happened or the deadline passed; sleeps in between. `make_way`, when given, ends it as
  // soon as that is not 0.
  size_t wait(Deadline deadline, const std::atomic<int>* make_way = nullptr);
  // The same with a timeout; the clock is not read when something has come already.
  size_t wait_ms(uint32_t timeout_ms);
  // Polls until `done` or the deadline; true when done.
  bool poll_until(Deadline deadline, FunctionRef<bool()> done) { return wait_until(deadline, done); }
  // For a program that waits by itself, on descriptor(), instead of wait(). True: nothing is to be done now; poll when the
  // descriptor is readable, or when `deadline`, which is brought forward, has passed. False: poll and arm again.
  bool arm(Deadline& deadline);
  int descriptor() const noexcept { return transport_->descriptor(); }
  // While another thread drives the node, one that waits calls `pause` instead of driving it (capi/progress.h): it lets others
  // in until something has happened, or the deadline; for a moment, when that has passed. Empty: a thread that waits drives the node itself.
  void set_pause(std::function<void(Deadline)> pause) noexcept { pause_ = std::move(pause); }
  // Is this inside poll(): in an ifunc, or in a function that the node called?
  bool is_polling() const noexcept { return polling_; }
  // Is this in a call that runs on another thread of the node, in a function that it calls?
  bool is_in_handed_call() const noexcept { return !polling_ && executor_.inside_call(); }
  // Fails futures whose deadline has passed.
  void expire();
  // From now on calls of peers are refused; those that run or wait here go on. TC_ERR_BUSY: some do. At the latest when the poll
  // that this is called from returns.
  Status drain();
  // Ends calls that still wait, with TC_ERR_CLOSED, and accepts no more.
  void close_calls() noexcept;
  // Before the node is freed while other threads may enter it: nothing that comes from now on is run, and calls on other
  // threads end. Waits for that, for a moment. True: they have.
  bool end_handed_calls() noexcept;
  void wake() noexcept { transport_->wake(); }  // any thread
  // Reads the keyring anew. What follows from it happens in the next poll or wait of the node's thread, which is woken.
  // Any thread. TC_ERR_INVALID and others: the file is bad, and nothing changes.
  Status reload_keys();
  // As option log. Any thread. TC_ERR_INVALID.
  Status set_log_level(std::string_view level);
  // An ifunc that runs, and a function that a ready future calls, cannot wait for `what`: the thread that waited would be the
  // one that has to bring it. TC_ERR_INVALID.
  Status can_wait_for(std::string_view what) const;

  // ---- Which node this is

  const Identity& identity() const noexcept { return self_; }
  const std::string& address() const noexcept { return self_.address; }
  // Where node `number` of the cluster listens; empty when there is no such node.
  const std::string& address_of(uint32_t number) const noexcept;
  uint32_t node_id() const noexcept { return invocation_.node_id(); }
  uint32_t node_count() const noexcept { return invocation_.node_count(); }
  // Statistics, and one of them by name (statistics.h).
  Numbers numbers();
  Result<uint64_t> stat(std::string_view name);
  // What it tells who asks about it.
  wire::NodeReport report();
  // The name of the ifunc that runs now; none: no call runs. Any thread.
  std::optional<std::string> running_ifunc() const { return watchdog_.running(); }
  uint64_t reports_of_stuck_calls() const noexcept { return stuck_.load(std::memory_order_relaxed); }  // any thread

  // ---- What the application does

  Result<Link*> connect(std::string_view address, Deadline deadline);
  // Ends one endpoint of the link, whatever it returns (Links::close()).
  Status close(Link& link, Deadline deadline);
  Result<std::shared_ptr<source::Ifunc>> register_file(const std::string& name);
  Result<std::shared_ptr<source::Ifunc>> register_bundle(Bundle bundle);
  // Sends a call without an answer. Waits for room until `deadline` (CallSender::send()).
  Status send(Link& link, const source::Message& message, bool with_code, Deadline deadline);
  // Sends a call whose answer must come within `answer_ms` (0: no limit). Waits for room until `deadline`.
  Result<std::shared_ptr<Future>> call(Link& link, const source::Message& message, uint32_t answer_ms,
                                       Deadline deadline);
  // Asks the peer about itself; its answer must come within `answer_ms` (0: no limit). TC_ERR_BUSY: Link::ask_statistics().
  Result<std::shared_ptr<Future>> ask_statistics(Link& link, uint32_t answer_ms);
  void forget(Future& future) { futures_.forget(future); }
  // Ends the wait for a future, which is not ready, with TC_ERR_CANCELED, and tells the peer that has the call.
  void cancel(Future& future) noexcept;
  // Calls `notify` once, from polling, when the future, which is not ready yet, is (FutureTable::notify_when_ready()).
  void notify_when_ready(Future& future, void (*notify)(void*) noexcept, void* context) {
    futures_.notify_when_ready(future, notify, context);
  }
  // Gives ifuncs data by name; null withdraws it. TC_ERR_BUSY: that is so for all calls that begin from now on, but calls on
  // other threads still have what stood there before. Waits for these where it can, for ten seconds.
  Status expose(std::string name, void* data, size_t size, SharedFile file = {});

  // ---- Parts that the application's side uses

  const Config& config() const noexcept { return config_; }
  BufferPool& buffers() noexcept { return *buffers_; }
  source::Registry& registry() noexcept { return code_.codes.registry(); }
  target::Policy& policy() noexcept { return code_.codes.policy(); }
  target::Executor& executor() noexcept { return executor_; }
  // Calls that ran, on any thread.
  uint64_t executed() const noexcept { return executor_.executed(); }
  const FutureTable& futures() const noexcept { return futures_; }
  target::CodeStore& store() noexcept { return code_.codes.store(); }
  Links& links() noexcept { return links_; }

 private:
  explicit Node(Config config);
  Status start(const MakeTransport& make_transport);
  void leave() noexcept;
  Status or_forget(Future& future, FunctionRef<Status()> send);
  Status check_cluster() const;
  Status choose_key();
  Status join_cluster();
  void have_last_words();
  std::string make_label() const;
  void forget_code(target::Code& code);
  size_t waiting_calls();
  void renew_rights();
  void report_stuck(const std::string& ifunc, uint64_t running_ms);

  // ---- Waiter
  bool may_wait() const noexcept override { return !polling_; }
  bool wait_until(Deadline deadline, FunctionRef<bool()> done) override;
  bool wait_for_room(Deadline deadline, FunctionRef<bool()> done) override;

  size_t wait_by(transport::WaitPolicy policy);
  size_t block(Deadline deadline);
  bool yield(Deadline deadline, uint32_t polls);
  uint64_t latest_end_of_sleep(uint64_t until) const noexcept;
  size_t calls_left() const noexcept;
  void notify_ready() noexcept;
  size_t progress();
  size_t drain_backlogs();
  size_t run_calls();
  size_t deliver_handed();
  void housekeep();

  // What each poll reads.
  std::unique_ptr<transport::Transport> transport_;
  uint32_t polls_ = 0;
  uint32_t progresses_ = 0;
  bool polling_ = false;
  bool notifying_ = false;  // functions of ready futures run
  bool closing_ = false;    // no calls any more
  PendingWork work_;
  uint64_t next_expiry_ns_ = 0;
  uint64_t next_trim_ns_ = UINT64_MAX;
  transport::Core core_;
  std::function<void(Deadline)> pause_;

  Config config_;
  Identity self_;
  const uint64_t started_ns_ = now_ns();
  std::shared_ptr<spdlog::logger> log_;
  CallLog call_log_{*log_};
  Counters counters_;
  std::shared_ptr<BufferPool> buffers_;
  const Common common_{config_, self_, work_, counters_, *log_, call_log_, reserve_, *buffers_};
  LinkIds link_ids_;
  MemoryReserve reserve_;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;  // null: `id` and `cluster` are configured
  FutureTable futures_;
  Authority authority_{config_, self_, *log_};

  std::optional<target::LastWords> last_words_;  // outlives the threads that compile and run code

  // The parts refer to each other; none uses another one before the node has started.
  target::Executor executor_{invocation_};
  NodeCode code_{common_, executor_, links_, local_calls_};
  Answers answers_{common_, links_, futures_};
  LocalCalls local_calls_{common_, executor_, code_, authority_, answers_};
  CallEffects effects_{common_, answers_, links_, local_calls_, code_.codes};
  Invocation invocation_{common_, executor_, effects_, local_calls_, authority_};
  HandedCalls handed_{common_, executor_, invocation_, code_.codes};
  Workers workers_{common_, handed_, invocation_};
  Cells cells_{common_, handed_, authority_};
  CallPlaces places_{executor_, workers_, cells_};
  std::vector<std::shared_ptr<const ExposedData>> withdrawn_;  // that calls on other threads may have
  bool links_go_first_ = false;                                // of those that waited for another thread
  PeerFailures peer_failures_;
  LinkServices link_services_;
  Links links_{link_services_, futures_, watchdog_};
  std::atomic<uint64_t> stuck_{0};  // reports of the watchdog
  Watchdog watchdog_;               // last, so that it ends before what it looks at
};

}  // namespace tc::node
