// SPDX-License-Identifier: Apache-2.0
//
// A node: source and target in one, wired together (docs/architecture.md). It owns everything below it: transport,
// links, registry, policy, code store, executor.
//
//   node.cc        life, polling, waiting
//   node_links.cc  connecting, losing, finding the link to a node
//   node_calls.cc  registering, calling, answers
//   deaths.cc      nodes that die, and calls that die with them
//   invocation.cc  what a running ifunc asks of us (IfuncHost)
//
// Thread: one at a time. Two nodes in one process do not know of each other.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_reserve.h"
#include "node/code_loader.h"
#include "node/config.h"
#include "node/future.h"
#include "node/link/link.h"
#include "node/link/slice_requests.h"
#include "node/liveness/deaths.h"
#include "node/liveness/watchdog.h"
#include "node/refusals.h"
#include "node/remote_compile/compile_requests.h"
#include "node/remote_compile/compile_service.h"
#include "source/registry.h"
#include "source/sent_code.h"
#include "target/executor.h"
#include "transport/wait_policy.h"

namespace spdlog {
class logger;
}

namespace tc::node {

class Node final : public transport::Events, public target::IfuncHost {
 public:
  using MakeTransport = std::function<Result<std::unique_ptr<transport::Transport>>(const Config&, transport::Events&)>;

  // The id in HELLO of a node that is in no cluster.
  static constexpr uint32_t no_id = ~uint32_t{0};

  static Result<std::unique_ptr<Node>> create(Config config, const MakeTransport& make_transport);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // ---- node.cc

  // Runs what has come, moves what must go. Returns how much happened; 0 is "idle". Inside a running ifunc it does
  // nothing.
  size_t poll();
  // Polls until something happened or the deadline passed; sleeps in between. `make_way`, when given, ends it as
  // soon as that is not 0.
  size_t wait(Deadline deadline, const std::atomic<int>* make_way = nullptr);
  // The same with a timeout, and no look at the clock when something has come already.
  size_t wait_ms(uint32_t timeout_ms);
  // Fails futures whose deadline has passed.
  void expire();
  // Polls until `done` or the deadline; true when done. Does not sleep inside an ifunc.
  template <class Done>
  bool poll_until(Deadline deadline, Done&& done) {
    while (!done()) {
      if (deadline.passed()) return done();
      if (wait(slice_of(deadline)) == 0) expire();
    }
    return true;
  }
  // The same for what no event announces: room that a peer makes. Looks after every poll, and naps only.
  template <class Done>
  bool poll_for(Deadline deadline, Done&& done) {
    for (uint32_t looks = 1; !done(); ++looks) {
      poll();
      if (looks % looks_between_yields == 0 && !give_others_a_turn(deadline, looks)) return done();
    }
    return true;
  }
  void wake() noexcept { transport_->wake(); }  // any thread
  const std::string& address() const noexcept { return address_; }
  // Where node `number` of the cluster listens; empty when there is no such node.
  const std::string& address_of(uint32_t number) const noexcept;
  const std::string& label() const noexcept { return label_; }  // "node 3 (name)", for messages
  Result<uint64_t> stat(std::string_view name) const;
  // Any thread.
  uint64_t reports_of_stuck_calls() const noexcept { return stuck_.load(std::memory_order_relaxed); }

  // ---- node_links.cc

  Result<Link*> connect(std::string_view address, Deadline deadline);
  // Flushes, says goodbye and forgets the link; returns what the flush said.
  Status close(Link& link, Deadline deadline);

  // ---- node_calls.cc

  Result<std::shared_ptr<source::Ifunc>> register_file(const std::string& name);
  Result<std::shared_ptr<source::Ifunc>> register_bundle(Bundle bundle);
  Status send(Link& link, const source::Message& message, bool with_code, Deadline deadline);
  Result<std::shared_ptr<Future>> call(Link& link, const source::Message& message, uint32_t deadline_ms, Deadline room);
  void forget(const Future& future) { futures_.forget(future); }
  void expose(std::string name, void* data, size_t size);

  source::Registry& registry() noexcept { return registry_; }
  source::SentCode& sent_code() noexcept { return sent_code_; }
  target::Policy& policy() noexcept { return policy_; }
  target::Executor& executor() noexcept { return executor_; }
  target::CodeStore& store() noexcept { return *store_; }
  const Config& config() const noexcept { return config_; }

  // ---- For links

  bool inside_ifunc() const noexcept { return polling_ && target::current_host == this; }
  bool polling() const noexcept { return polling_; }  // then nobody below may wait
  uint64_t instance() const noexcept { return instance_; }
  uint32_t wire_id() const noexcept;  // node_id(), or no_id outside a cluster
  spdlog::logger& log() noexcept { return *log_; }
  uint64_t next_link_mark() noexcept { return ++link_marks_; }
  void note_backlog() noexcept { backlog_ = true; }
  void note_loss() noexcept { links_lost_ = true; }
  void count_code_sent(size_t bytes) noexcept { counters_.code_bytes_sent += bytes; }
  void count_need() noexcept { ++counters_.needs; }
  void count_failure(const Error& why);
  void note_first_execution(uint64_t ns) noexcept { counters_.first_execution_ns = ns; }
  // Takes code into the store; it is known by its name from then on. `from`: the host it came from, empty for our own.
  // `object`: what somebody compiled of it for us, if that was needed.
  Result<target::Code*> load(Bundle bundle, std::string_view from, Bytes object = {});
  // What is here of that code, if possible with slices for `triple`: sent, registered or loaded. Null: nothing.
  const Bundle* bundle_of(const ContentId& id, const TargetTriple& triple);
  // The code section of a frame for a peer with this triple, of what `bundle` or this node holds.
  std::shared_ptr<const Bytes> code_section(const Bundle& bundle, const TargetTriple& triple);
  std::string no_memory_for_messages(size_t bytes);
  // May peers from there run code here?
  bool trusts(const transport::Origin& origin) const noexcept;
  Error not_trusted(const transport::Origin& origin) const;
  void on_link_lost(Link& link);
  transport::Transport& transport() noexcept { return *transport_; }
  BufferPool& buffers() noexcept { return *buffers_; }
  FutureTable& futures() noexcept { return futures_; }
  Deaths& deaths() noexcept { return deaths_; }
  SliceRequests& slices() noexcept { return slices_; }
  CompileRequests& compile_requests() noexcept { return compile_requests_; }
  CodeLoader& code_loader() noexcept { return code_loader_; }
  void count_compile_request() noexcept { ++counters_.compile_requests; }
  // A call of ours to ourselves waits for it no more.
  void on_compiled();
  // Does our operator let us compile for that peer? TC_ERR_DENIED.
  Status may_compile_for(const Link& link) const;
  // Only when we may compile for others.
  CompileService& compile_service() noexcept { return *compile_service_; }
  void count_slice_request() noexcept { ++counters_.slice_requests; }
  void each_link(const std::function<void(Link&)>& show);
  // Null when it is not ready, or gone.
  Link* link_marked(uint64_t mark);
  // The link to who listens there; it may have to greet first.
  Result<Link*> link_at(std::string_view address);
  // The link has something to do though no frame comes: the next poll sees to it.
  void come_back_to(Link& link);
  // Calls with a token that are here, neither running nor passed on, with the instance of the node that asked.
  void each_call_held(const std::function<void(uint64_t asker, uint64_t token)>& show) const;

  // The running call ended: answers when it owes an answer.
  void finish(target::Call& call) {
    if (call.failed || (call.wants_reply && !call.answered)) answer_at_end(call);
  }
  void end_running_call() {
    finish(executor_.running());
    executor_.reset();
  }
  // Sends a reply to whom it belongs: along the route when there is one, else to `link`, else (null) to this node.
  void answer(Link* link, const wire::Route* route, const wire::Reply& reply);
  // A call that was not run fails: tells whoever waits for it. With the next poll(), as it may take a connection,
  // and links are lost in the middle of everything.
  void answer_for(uint64_t token, const wire::Route* route, const Error& error);
  // `memory`: where the answer's bytes lie, when that is a buffer; the future keeps it.
  void complete(const wire::Reply& reply, Buffer memory = {});

  // ---- transport::Events (node_links.cc)
  Status may_connect(const transport::Origin& origin) override;
  void on_accept(std::unique_ptr<transport::Connection> connection, ByteView hello) override;
  void on_greeting(transport::Connection& connection, ByteView hello) override;
  void on_frames(transport::Connection& connection) override;
  void on_lost(transport::Connection& connection, const Error& reason) noexcept override;
  void on_refused(const std::string& who, const Error& why) noexcept override;
  void on_warning(const std::string& what) noexcept override;

  // ---- target::IfuncHost (invocation.cc)
  void* data(std::string_view name, size_t* size) noexcept override;
  tc_status_t reply(ByteView bytes) noexcept override;
  tc_status_t forward(uint32_t node, ByteView payload) noexcept override;
  tc_status_t forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  tc_status_t inject(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  void fail(int32_t code, std::string_view message) noexcept override;
  void log(int level, std::string_view message) noexcept override;

 private:
  explicit Node(Config config);
  Status start(const MakeTransport& make_transport);
  Status check_cluster() const;
  Status start_compile_service();
  Status join_cluster();
  std::string make_label() const;
  static Deadline slice_of(Deadline deadline) noexcept;
  static constexpr uint32_t looks_between_yields = 16;
  size_t wait_by(transport::WaitPolicy policy);
  size_t block(Deadline deadline);
  bool give_others_a_turn(Deadline deadline, uint32_t looks);
  void tend();
  size_t progress();
  size_t receive_from(Link& link);
  size_t receive_from_polled();
  size_t receive_from_pending();
  void before_calls() noexcept {
    executor_.next_tick();
    if (executor_.watcher_dozes()) [[unlikely]]
      watchdog_->rouse();
  }
  void drain_backlogs();
  void answer_owed();
  void run_local_calls();
  Link& adopt(std::unique_ptr<transport::Connection> connection, bool initiator);
  void meet(Link& link, ByteView hello);
  void settle_on_one(Link& link);
  // There was no memory for what it sends, or for what its loss wants done.
  void give_up(Link& link) noexcept;
  void finish_losses() noexcept;
  void remove_lost_links();
  // Of a node of the cluster; null: not looked for yet, or lost.
  Link* known_link(uint32_t node) const noexcept {
    return node < links_by_number_.size() ? links_by_number_[node] : nullptr;
  }
  Result<Link*> link_to(uint32_t node);
  Link* link_to_address(std::string_view address);
  // A link by which who listens there connected to us, and is ready.
  Link* accepted_from(std::string_view address);
  Link* link_to_instance(uint64_t instance);
  Result<Link*> reach(std::string_view address);
  // Sends on behalf of the running call.
  tc_status_t pass_on(uint32_t node, const Outgoing& call);
  void answer_at_end(target::Call& call);
  wire::CallTicket ticket_of(const target::Call& call) const noexcept;
  wire::Route route_to_asker(const target::Call& call) const;
  tc_status_t forward_call(uint32_t node, Outgoing call);
  tc_status_t inject_call(uint32_t node, std::string_view name, ByteView payload);
  Result<const Bundle*> bundle_named(std::string_view name);
  const Bundle* companion_named(std::string_view name);

  // A call to ourselves: runs from poll(), like any other.
  struct LocalCall {
    Bundle bundle;
    Bytes payload;
    wire::CallTicket ticket;
    std::optional<wire::PackedRoute> route;
  };
  void run_local(LocalCall& call);
  void answer_compiled();
  void forget_code(const target::Code& code);
  void watch(const target::Code& code);

  struct Counters {
    uint64_t code_bytes_sent = 0;
    uint64_t needs = 0;
    uint64_t slice_requests = 0;
    uint64_t compile_requests = 0;
    uint64_t compiled_for_others = 0;
    uint64_t failures = 0;
    uint64_t dropped_links = 0;
    uint64_t refused_strangers = 0;
    uint64_t late_answers = 0;
    uint64_t first_execution_ns = 0;
    uint64_t load_ns = 0;
  };
  struct Exposed {
    std::string name;
    void* data;
    size_t size;
  };

  // What each poll touches.
  std::unique_ptr<transport::Transport> transport_;
  std::vector<Link*> polled_links_;  // whose peers write into our memory
  std::vector<Link*> pending_;       // come_back_to()
  uint32_t polls_ = 0;
  uint32_t progresses_ = 0;
  bool polling_ = false;
  bool backlog_ = false;
  bool links_lost_ = false;
  bool awaits_answers_ = false;  // a future may have a deadline
  bool compiles_ = false;        // for others: there is a compile_service_
  std::vector<LocalCall> local_calls_;
  uint64_t next_expiry_ns_ = 0;
  target::Executor executor_;

  Config config_;
  std::shared_ptr<spdlog::logger> log_;
  uint64_t instance_;
  std::string label_;
  std::string address_;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;  // null: `id` and `cluster` are configured
  std::shared_ptr<BufferPool> buffers_;
  source::Registry registry_;
  source::SentCode sent_code_;
  target::Policy policy_;
  std::unique_ptr<target::CodeStore> store_;
  std::vector<Exposed> exposed_;        // few: found by looking at each
  std::vector<Link*> links_by_number_;  // known_link()
  std::vector<std::unique_ptr<Link>> links_;
  FutureTable futures_;
  Deaths deaths_{*this};
  SliceRequests slices_{*this};
  CompileRequests compile_requests_{*this};
  CodeLoader code_loader_{*this, compile_requests_};
  std::map<std::string, ContentId, std::less<>> names_of_code_;  // labels of code that others sent
  // Companions that running code asked for, by the code they came with; gone with it.
  std::unordered_map<ContentId, std::map<std::string, Bundle, std::less<>>> companions_;
  std::vector<LocalCall> uncompiled_calls_;  // to ourselves, whose code is being compiled elsewhere
  struct Owed {
    std::optional<wire::Route> route;
    uint64_t token;
    Error error;
  };
  std::deque<Owed> owed_;  // bad news for callers
  Counters counters_;
  Refusals refusals_;
  MemoryReserve reserve_;
  std::atomic<uint64_t> stuck_{0};  // reports of the watchdog
  uint64_t link_marks_ = 0;
  std::unique_ptr<CompileService> compile_service_;  // null: we compile for nobody
  std::unique_ptr<Watchdog> watchdog_;  // from the first code on; last, so that it ends before what it looks at
};

}  // namespace tc::node
