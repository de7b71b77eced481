// SPDX-License-Identifier: Apache-2.0
//
// Connecting, and finding the link to a node; reading what has come, and losing links.
#include "node/links.h"

#include <spdlog/logger.h>
#include <threechains/ifunc.h>

#include <algorithm>
#include <new>

#include "base/log_format.h"
#include "base/random.h"
#include "node/authority.h"
#include "node/call_log.h"
#include "node/ended_nodes.h"
#include "node/liveness/peer_failures.h"
#include "node/liveness/watchdog.h"
#include "node/rates.h"

namespace tc::node {

namespace {

template <class Matches>
Link* find(const std::vector<std::unique_ptr<Link>>& links, const Matches& matches) {
  const auto found = std::ranges::find_if(links, [&](const auto& link) { return matches(*link); });
  return found != links.end() ? found->get() : nullptr;
}

// At the end of its life, also when there is no memory.
class [[nodiscard]] Forgotten {
 public:
  explicit Forgotten(std::string_view& text) noexcept : text_(text) {}
  ~Forgotten() { text_ = {}; }
  Forgotten(const Forgotten&) = delete;
  Forgotten& operator=(const Forgotten&) = delete;

 private:
  std::string_view& text_;
};

// Every peer learns our instance and might claim it at another node. On a trusted network a host is all that is known.
bool are_of_one_peer(const transport::Origin& one, const transport::Origin& other) noexcept {
  if (one.key || other.key) return one.key == other.key;
  return one.same_user == other.same_user && (one.same_user || one.host == other.host);
}

}  // namespace

// What this node tells a peer of itself.
Bytes Links::own_greeting() const {
  const auto& self = services_.channel.common.self;
  wire::Hello hello;
  hello.protocol = wire::protocol_version;
  hello.abi = TC_IFUNC_ABI;
  hello.instance = self.instance;
  hello.node_id = self.wire_id();
  hello.max_message = services_.channel.common.config.max_message;
  hello.name = self.name;
  hello.address = self.address;
  hello.triple = services_.channel.common.config.code.triple.text;
  hello.last_words = self.last_words;
  return wire::encode_hello(hello);
}

Link& Links::adopt(std::unique_ptr<transport::Connection> connection, bool initiator) {
  links_.push_back(std::make_unique<Link>(*this, services_, std::move(connection), initiator));
  return *links_.back();
}

Result<Link*> Links::reach(std::string_view address) {
  TC_ASSIGN(auto connection, transport_->connect(address, own_greeting()));
  return &adopt(std::move(connection), true);
}

Result<Link*> Links::reach_caller(std::string_view address, const wire::SharedChain& chain) {
  const auto& cluster = services_.channel.common.self.cluster;
  if (transport_->is_by_name(address) && std::ranges::find(cluster, address) == cluster.end())
    return fail(TC_ERR_DENIED, "{} is a name, and answers go to addresses that are numbers", address);
  caller_at_ = address;
  caller_key_ = chain != nullptr ? std::optional(trust::PublicKey{chain->keys().front()}) : std::nullopt;
  auto reached = [&] {
    const Forgotten at_the_end(caller_at_);
    return reach(address);
  }();
  if (reached) (*reached)->meets_nobody = true, (*reached)->caller_key = caller_key_;
  return reached;
}

// Of two that connect to one address, the one for the application decides.
Expectation Links::expected_at(std::string_view address) const noexcept {
  if (!caller_at_.empty()) return caller_at_ != address ? Expectation{} : Expectation{false, caller_key_};
  const auto begun = [&](bool for_answers) {
    return find(links_, [&](const Link& link) {
      return link.state() == Link::State::greeting && link.meets_nobody == for_answers &&
             link.channel().leads_to(address);
    });
  };
  const auto* const for_answers = begun(true);
  return for_answers == nullptr || begun(false) != nullptr ? Expectation{}
                                                           : Expectation{false, for_answers->caller_key};
}

Result<Link*> Links::connect(std::string_view address, Deadline deadline) {
  if (services_.executor.inside_call()) return fail(TC_ERR_INVALID, "an ifunc that runs cannot wait for a connection");
  BusyRetries retries;
  auto link = connect_once(address, deadline);
  while (!link && link.error().code == TC_ERR_LIMIT) {
    const uint64_t again = now_ns() + retries.next_pause_ns(random_number());
    if (again >= deadline.at_ns()) break;
    services_.channel.waiter.wait_until(Deadline::at_ns(again), [] { return false; });
    auto next = connect_once(address, deadline);
    if (!next && next.error().code == TC_ERR_TIMEOUT) break;  // why there was no room says more
    link = std::move(next);
  }
  return link;
}

Result<Link*> Links::connect_once(std::string_view address, Deadline deadline) {
  // One connection serves both ways: over TCP, what goes back acknowledges what came.
  if (Link* const theirs = accepted_from(address)) {
    ++theirs->endpoints;
    return theirs;
  }
  TC_ASSIGN(Link * link, reach(address));
  link->endpoints = 1;  // until we return, nobody else may remove it
  link->is_awaited = !link->is_ready();
  services_.channel.waiter.wait_until(deadline, [&] { return link->state() != Link::State::greeting; });
  if (link->is_ready()) {
    link->is_awaited = false;
    return link;
  }
  link->endpoints = 0;
  auto error = link->is_lost() ? link->reason() : Error{TC_ERR_TIMEOUT, "no answer within the deadline"};
  link->channel().disconnect(error);
  handle_losses();
  if (const auto words = last_words_of(address); !words.empty()) error.message += fmt::format(" ({})", words);
  return context(fmt::format("connecting to {}", address), std::move(error));
}

Status Links::close(Link& link, Deadline deadline) {
  if (!services_.channel.waiter.may_wait() || services_.executor.inside_call()) {
    ++link.closing_endpoints;
    link.closing_flush = {};
    link.close_by_ns = std::max(link.close_by_ns, deadline.at_ns());
    services_.channel.common.work.backlog = true;  // continue_closing()
    return link.is_lost() ? Status(fail(link.reason())) : Status{};
  }
  auto flushed = link.flush(deadline);
  end_endpoints(link, 1);
  end_unused();
  handle_losses();
  return flushed;
}

void Links::end_endpoints(Link& link, uint32_t count) noexcept {
  link.endpoints -= count;
  if (link.endpoints == 0 && !link.channel().is_accepted() && link.is_ready()) {
    link.channel().release();
    futures_.fail_those(link.futures, error_in_any_case(TC_ERR_CLOSED, "the endpoint was closed here"));
    begin_nothing_new(link);
  }
  if (link.endpoints == 0 && link.is_released_by_peer()) some_are_released_ = true;
  on_unheld();
}

void Links::begin_nothing_new(Link& link) noexcept {
  std::ranges::replace(by_number_, &link, static_cast<Link*>(nullptr));
}

void Links::on_released_by_peer(Link& link) {
  begin_nothing_new(link);
  if (!link.is_used() && link.is_run_by_peer()) {
    link.ended_in_order = true;
    link.channel().close(link.closed_by_peer());
  } else if (link.endpoints == 0) {
    some_are_released_ = true;
  }
}

void Links::end_unused() {
  if (!std::exchange(some_are_released_, false)) return;
  try {
    for (const auto& link : links_)
      if (link->is_ready() && link->is_released_by_peer()) on_released_by_peer(*link);
  } catch (const std::bad_alloc&) {
    some_are_released_ = true;
    throw;
  }
}

// Of endpoints that were closed where nobody could wait.
void Links::continue_closing(Link& link) {
  if (link.advance(link.closing_flush) || now_ns() >= link.close_by_ns)
    end_endpoints(link, std::exchange(link.closing_endpoints, 0));
}

Result<Link*> Links::find_or_reach(std::string_view address) {
  Link* const known = find(links_, [&](const Link& link) {
    return !link.is_lost() && !link.is_ending() && !link.meets_nobody && link.channel().leads_to(address);
  });
  return known != nullptr ? known : reach(address);
}

Result<Link*> Links::to_node(uint32_t node) {
  if (Link* const link = known(node); link != nullptr && !link->is_lost()) return link;
  const auto& cluster = services_.channel.common.self.cluster;
  if (node < cluster.size()) {
    by_number_.resize(cluster.size());
    TC_ASSIGN(by_number_[node], find_or_reach(cluster[node]));
    return by_number_[node];
  }
  if (cluster.empty())
    if (Link* const link = that_says_it_is(node)) return link;
  const auto& self = services_.channel.common.self;
  return fail(TC_ERR_NOT_FOUND, "there is no node {}: {} knows {} nodes", node, self.label, self.count());
}

// Outside of a cluster a number is what the peer says of itself: of one that is believed, or whose key is known where it
// listens. Calls come before answers: of a link for answers alone, nobody chose the peer.
Link* Links::that_says_it_is(uint32_t node) const noexcept {
  const auto says_so = [&](const Link& link) {
    return link.is_ready() && !link.is_ending() && !link.meets_nobody && link.peer().node_id == node;
  };
  Link* const believed = find(links_, [&](const Link& link) { return says_so(link) && link.receiver().is_believed(); });
  if (believed != nullptr) return believed;
  return find(links_, [&](const Link& link) { return says_so(link) && link.channel().is_proven(); });
}

// An instance number is what the peer says of itself. The call came by its link, or it is believed, or it has the first key
// on whose behalf the call is made, or its key is known at that address.
Link* Links::ready_to(const wire::ReturnAddress& to, const wire::SharedChain& chain) const noexcept {
  const auto may_be = [&](const Link& link) {
    return link.is_ready() && link.peer().instance == to.instance && (!link.is_ending() || to.address.empty());
  };
  Link* const came_by = to.came_by != 0 ? with_id(to.came_by) : nullptr;
  if (came_by != nullptr && may_be(*came_by)) return came_by;
  // The nodes on its way keep a place for the answer of a call without an address until it comes by (forwarded_calls.h).
  if (came_by != nullptr && to.address.empty()) return nullptr;
  const auto is_caller = [&](const Link& link) {
    const auto& key = link.channel().origin().key;
    return chain != nullptr && !chain->empty() && key && key->bytes == chain->keys().front();
  };
  return find(links_, [&](const Link& link) {
    return may_be(link) && (link.receiver().is_believed() || is_caller(link) ||
                            (!to.address.empty() && link.channel().leads_to(to.address)));
  });
}

Link* Links::that_forwarded(const ForwardedCalls::Call& call) const noexcept {
  return find(links_, [&](Link& link) { return link.is_ready() && link.forwarded.take(call); });
}

bool Links::record_forwarded(const target::Call& call, const wire::CallHeader& header,
                             const wire::ReturnAddress& to) const {
  Link* link = link_of(call);
  if (link == nullptr && call.has_return_address) link = with_id(call.return_address.value().came_by);
  return link == nullptr || link->forwarded.add({header.token, to.instance}, to.address.empty(), header.deadline_ms);
}

bool Links::is_known(std::string_view address) const { return services_.authority.is_known(address); }

Link* Links::to_address(std::string_view address) const noexcept {
  return find(links_, [&](const Link& link) {
    return !link.is_lost() && !link.is_ending() && link.channel().leads_to(address);
  });
}

// A link that the node which listens there opened to us.
Link* Links::accepted_from(std::string_view address) const noexcept {
  return find(links_, [&](const Link& link) {
    return link.channel().is_accepted() && link.is_ready() && !link.is_ending() && link.channel().leads_to(address);
  });
}

Link* Links::with_id(uint64_t id) const noexcept {
  return find(links_, [&](const Link& link) { return link.id() == id && link.is_ready(); });
}

void Links::each(FunctionRef<void(Link&)> show) const {
  for (size_t i = 0; i < links_.size(); ++i) show(*links_[i]);
}

transport::Traffic Links::traffic() const noexcept {
  auto all = ended_;
  for (const auto& link : links_) {
    const auto one = link->channel().connection().traffic();
    all.received += one.received;
    all.sent += one.sent;
  }
  return all;
}

std::vector<wire::LinkReport> Links::report() const {
  std::vector<wire::LinkReport> told;
  for (const auto& link : links_) {
    if (!link->is_ready()) continue;
    const auto& channel = link->channel();
    const auto traffic = channel.connection().traffic();
    told.push_back({link->peer_label(), std::string(channel.connection().transport()), link->calls(), traffic.received,
                    traffic.sent, traffic.waiting + channel.backlog_bytes()});
  }
  return told;
}

void Links::each_waiting_call(ShowCall show) const {
  for (const auto& link : links_) link->each_waiting_call(show);
}

// Two nodes that connect to each other at the same time have two connections. Both use the one of the smaller instance
// from then on, so that what goes back acknowledges what came.
void Links::settle_on_one(Link& link) {
  const auto instance = link.peer().instance;
  Link* const other = find(links_, [&](const Link& one) {
    return &one != &link && one.is_ready() && !one.is_ending() && one.peer().instance == instance;
  });
  if (other == nullptr || link.channel().is_accepted() == other->channel().is_accepted()) return;
  if (!are_of_one_peer(link.channel().origin(), other->channel().origin())) return;
  const bool prefers_accepted = instance < services_.channel.common.self.instance;
  Link* const better = link.channel().is_accepted() == prefers_accepted ? &link : other;
  std::ranges::replace(by_number_, better == &link ? other : &link, better);
}

// ---- What the transport tells

Status Links::may_connect(const transport::Origin& origin) {
  TC_CHECK(services_.authority.rights_of(origin));
  return {};
}

// A key that holds links without end keeps others out: they take memory, descriptors, and time of each poll.
Status Links::has_room_for(const transport::Origin& peer) const {
  TC_ASSIGN(const auto rights, services_.authority.rights_of(peer));
  if (rights.is_all()) return {};
  const auto links = std::ranges::count_if(links_, [&](const auto& link) {
    return link->channel().is_accepted() && !link->is_lost() && link->channel().origin().key == peer.key;
  });
  return shares_.may_add_link(rights, static_cast<size_t>(links));
}

Status Links::is_expected(std::string_view address, const transport::Origin& origin) {
  return services_.authority.is_expected(address, origin, expected_at(address));
}

void Links::on_accept(std::unique_ptr<transport::Connection> connection, ByteView hello) {
  if (is_leaving_) return connection->refuse(Error{TC_ERR_CLOSED, "this node ends"});
  if (const auto has_room = has_room_for(connection->origin()); !has_room) {
    on_refused(connection->origin().text, has_room.error());
    return connection->refuse(has_room.error());
  }
  if (const auto took = connection->origin().handshake_ns; took != 0)
    services_.channel.common.counters.handshakes.add(took);
  accept_greeting(adopt(std::move(connection), false), hello);
}

void Links::on_greeting(transport::Connection& connection, ByteView hello) {
  accept_greeting(*static_cast<Link*>(connection.owner()), hello);
}

void Links::accept_greeting(Link& link, ByteView hello) try {
  if (const auto accepted = link.accept_greeting(hello, own_greeting()); !accepted)
    return link.channel().disconnect(accepted.error());
  if (const auto& words = link.peer().last_words; !words.empty()) {
    services_.channel.common.call_log.warn(
        link.channel(), fmt::format("{} says of the node that was there before: {}", link.peer_label(), words));
  }
  // What let us in is the node there; what refused us may have been anything.
  if (!link.channel().is_accepted() && !link.meets_nobody)
    services_.authority.remember(link.channel().connection().peer_address(), link.channel().origin());
  find_what_it_stands_for(link);
  if (link.channel().connection().is_polled()) polled_.push_back(&link);
  settle_on_one(link);
} catch (const std::bad_alloc&) {
  give_up(link);
}

// Of a link for answers: where the key of the node there is known, calls may take it, too.
void Links::find_what_it_stands_for(Link& link) const {
  auto& channel = link.channel();
  const auto& authority = services_.authority;
  const auto& address = link.peer().address;
  channel.set_stands_for_address(!address.empty() && authority.may_stand_for(address, channel.origin()));
  if (link.meets_nobody && authority.may_stand_for(channel.connection().peer_address(), channel.origin()))
    link.meets_nobody = false;
}

void Links::on_frames(transport::Connection& connection) {
  if (connection.owner() == nullptr) return;
  auto& link = *static_cast<Link*>(connection.owner());
  if (!link.is_pending) receive_from(link);  // else it has its turn with the next poll
}

void Links::on_lost(transport::Connection& connection, const Error& reason) noexcept {
  if (connection.owner() == nullptr) return;
  auto& link = *static_cast<Link*>(connection.owner());
  try {
    if (is_leaving_) return link.channel().end(reason);
    if (link.is_released_by_peer()) return link.end(link.closed_by_peer());
    link.end(Error{reason.code,
                   fmt::format("{}{}: {}", link.peer_label(), link.is_ready() ? " is gone" : "", reason.message)});
  } catch (const std::bad_alloc&) {
    give_up(link);
  }
}

void Links::on_refused(const std::string& who, const Error& why) noexcept {
  ++services_.channel.common.counters.refused_peers;
  const LogContext about({.peer = who});
  if (refusals_.record(now_ns())) services_.channel.common.log.warn("{} is refused: {}", who, why.message);
}

uint64_t Links::take_unsaid_refusals() noexcept { return refusals_.take_unsaid(now_ns()); }

void Links::on_warning(const std::string& what) noexcept { services_.channel.common.log.warn("{}", what); }

// ---- Reading

size_t Links::receive_pending() {
  size_t happened = 0;
  for (auto* const link : std::exchange(pending_, {})) {
    link->is_pending = false;
    happened += receive_from(*link);
  }
  return happened;
}

void Links::come_back_to(Link& link) {
  if (link.is_pending) return;
  pending_.push_back(&link);
  link.is_pending = true;
}

// Before any others read what has come since, which would go first. Those that could run something, and wait again, go behind
// those that could not.
size_t Links::on_worker_free() {
  size_t happened = 0;
  const auto count = awaiting_worker_.size();  // await_worker() adds behind these
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    auto* const link = awaiting_worker_[i];
    auto& receiver = link->receiver();
    const auto ran = [&] { return receiver.handed_over() + services_.executor.executed(); };
    const auto before = ran();
    if (receiver.may_go_on()) {
      happened += receive_from(*link);
      if (!receiver.awaits_worker() || ran() != before) continue;
      awaiting_worker_.pop_back();
    }
    awaiting_worker_[kept++] = link;
  }
  const auto begin = awaiting_worker_.begin();
  awaiting_worker_.erase(begin + static_cast<ptrdiff_t>(kept), begin + static_cast<ptrdiff_t>(count));
  return happened;
}

// ---- Peers that send more than they may, or than they read

void Links::pause(Link& link, uint64_t until_ns) {
  if (link.paused_until_ns == 0) {
    paused_.push_back(&link);
    link.channel().connection().set_paused(true);
    ++services_.channel.common.counters.throttled;
    services_.channel.common.work.paused_links = true;
  }
  link.paused_until_ns = until_ns;
}

size_t Links::resume_paused() {
  const auto now = now_ns();
  const auto goes_on = [&](Link* link) {
    if (link->is_lost()) return true;
    if (!link->may_go_on(now)) return false;
    link->paused_until_ns = 0;
    link->channel().connection().set_paused(false);
    come_back_to(*link);
    return true;
  };
  const auto resumed = std::erase_if(paused_, goes_on);
  services_.channel.common.work.paused_links = !paused_.empty();
  return resumed;
}

uint64_t Links::next_resume_ns() const noexcept {
  uint64_t next = UINT64_MAX;
  for (const auto* const link : paused_) next = std::min(next, link->paused_until_ns);
  return next;
}

// ---- Large messages whose rest does not come

// Time in which this node did not poll is not the peer's.
void Links::expire_unfinished(uint64_t now_ns) {
  constexpr uint64_t longest_step_ns = 1'000'000'000;
  const auto passed_ns = std::min(now_ns - looked_at_unfinished_ns_, longest_step_ns);
  looked_at_unfinished_ns_ = now_ns;
  bool is_some_left = false;
  // By index: to tell a failure may connect.
  for (size_t i = 0; i < links_.size(); ++i) is_some_left |= !links_[i]->expire_unfinished(passed_ns);
  services_.channel.common.work.unfinished = is_some_left;
}

// ---- Peers that may do more or less than before

void Links::record_uses() {
  for (const auto& link : links_)
    if (link->is_ready()) link->record_use();
}

// A server that we connected to need not be allowed to connect itself; but a key that is expired or revoked is not called.
void Links::renew_rights(std::span<const trust::PublicKey> lost) {
  auto& authority = services_.authority;
  const auto conflicts = authority.take_conflicts();
  const auto has_key_of = [](const transport::Origin& origin, std::span<const trust::PublicKey> keys) {
    return origin.key && std::ranges::find(keys, *origin.key) != keys.end();
  };
  const auto may_be_called = [&](const Link& link, const transport::Origin& origin) -> Status {
    TC_CHECK(authority.is_valid(origin));
    const auto address = link.channel().connection().peer_address();
    TC_CHECK(authority.may_answer_at(address, origin));
    if (has_key_of(origin, conflicts)) TC_CHECK(authority.is_expected(address, origin));
    if (has_key_of(origin, lost)) TC_CHECK(authority.rights_of(origin));
    return {};
  };
  by_number_.clear();  // links that do not stand for their addresses any more
  for (size_t i = 0; i < links_.size(); ++i) {
    auto& link = *links_[i];
    if (!link.is_ready()) continue;
    find_what_it_stands_for(link);
    const auto& origin = link.channel().origin();
    auto may_stay = link.channel().is_accepted() ? may_connect(origin) : may_be_called(link, origin);
    if (may_stay)
      link.renew_rights();
    else
      link.channel().disconnect(may_stay.error());
  }
}

// A link for whose frames there is no memory ends; the node does not.
size_t Links::receive_from(Link& link) {
  if (!link.is_ready()) return 0;
  if (is_leaving_) return link.discard_received(), 0;
  auto& executor = services_.executor;
  executor.begin_turn();
  if (executor.watcher_dozes()) [[unlikely]]
    watchdog_.wake();
  const target::Executor::Scope scope(executor);
  try {
    return link.receive();
  } catch (const std::bad_alloc&) {
    fail_running();
    executor.reset();
    give_up(link);
    return 1;
  }
}

// The end of the link tells its peer. A call that came from farther away has a caller who cannot know.
void Links::fail_running() noexcept try {
  services_.channel.common.reserve.release();
  const auto& call = services_.executor.running();
  if (!call.has_return_address || !call.wants_reply || call.answered) return;
  services_.answers.fail_later(call.header.token, &call.return_address.value(),
                               Error{TC_ERR_NO_MEMORY, "there is no memory for a call"});
} catch (const std::bad_alloc&) {  // its deadline ends it
}

size_t Links::drain_backlogs() {
  size_t resumed = 0;
  for (size_t i = 0; i < links_.size(); ++i) {
    auto& link = *links_[i];
    if (link.drain_backlog()) ++resumed;
    if (link.channel().has_backlog() || link.closing_endpoints != 0) services_.channel.common.work.backlog = true;
    if (link.closing_endpoints != 0) [[unlikely]]
      continue_closing(link);
  }
  return resumed;
}

void Links::forget(const target::Code& code) noexcept {
  for (const auto& link : links_) {
    link->sender().forget(code);
    link->receiver().forget(code);
  }
}

void Links::send_again(const ContentId& id) {
  for (const auto& link : links_) link->sender().send_again(id);
}

// ---- The node's end

void Links::drain() noexcept {
  for (const auto& link : links_) link->receiver().take_no_more();
}

size_t Links::waiting_calls() const noexcept {
  size_t waiting = 0;
  for (const auto& link : links_)
    if (!link->is_lost()) waiting += link->receiver().waiting() + link->sender().waiting();
  return waiting;
}

size_t Links::unsent() const noexcept {
  size_t unsent = 0;
  for (const auto& link : links_) unsent += link->unsent();
  return unsent;
}

void Links::send_unsent() {
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i]->discard_received();
    links_[i]->channel().drain_backlog();
  }
}

// What the links have written leaves in Transport::finish().
void Links::close_all() noexcept {
  for (const auto& link : links_) {
    link->end_now();
    link->channel().close();
    if (!link->loss_is_told) link->reason().code == TC_ERR_CLOSED ? log_unsent(*link) : log_loss(*link);
  }
  links_.clear();
}

void Links::log_unsent(Link& link) noexcept try {
  const auto& channel = link.channel();
  if (!channel.has_backlog() && link.sender().waiting() == 0) return;
  const auto peer = link.peer_label();
  const AboutLink about(link.channel());
  services_.channel.common.log.warn(
      "{} bytes of frames and {} calls for {} are lost: they waited to be sent when the link was closed",
      channel.backlog_bytes(), link.sender().waiting(), peer);
} catch (const std::exception&) {  // no memory for the sentence
}

// ---- Losing

void Links::give_up(Link& link) noexcept {
  services_.channel.common.reserve.release();
  try {
    link.channel().disconnect(
        Error{TC_ERR_NO_MEMORY, fmt::format("there is no memory for what {} sends", link.peer_label())});
  } catch (const std::bad_alloc&) {
    link.channel().disconnect(Error{TC_ERR_NO_MEMORY, "no memory"});
  }
}

void Links::log_loss(const Link& link) noexcept try {
  ++services_.channel.common.counters.dropped_links;
  auto& log = services_.channel.common.log;
  const auto peer = link.peer_label();
  if (!link.is_awaited && link.reason().code != TC_ERR_DISCONNECTED)
    return services_.channel.common.call_log.warn(link.channel(),
                                                  fmt::format("link to {} dropped: {}", peer, link.reason().message));
  const AboutLink about(link.channel());
  if (link.is_awaited)
    log.info("link to {} was not made: {}", peer, link.reason().message);
  else
    log.info("link to {} ended: {}", peer, link.reason().message);
} catch (const std::exception&) {  // no memory for the sentence
}

// False: memory ran out on the way. Each step can be taken again.
bool Links::tell_loss(Link& link) noexcept try {
  if (link.reason().code == TC_ERR_CLOSED) log_unsent(link);
  link.fail_waiting();
  services_.code.on_link_lost(link, link.id());
  futures_.fail_those(link.futures, link.reason());
  services_.peer_failures.on_link_lost(link);
  if (link.reason().code != TC_ERR_CLOSED) log_loss(link);
  return link.loss_is_told = true;
} catch (const std::bad_alloc&) {
  services_.channel.common.reserve.release();
  return false;
}

void Links::add_ended(const Link& link) noexcept {
  const auto traffic = link.channel().connection().traffic();
  ended_.received += traffic.received;
  ended_.sent += traffic.sent;
}

void Links::handle_losses() {
  auto& work = services_.channel.common.work;
  if (!work.lost_links || services_.executor.inside_call()) return;
  work.lost_links = false;
  // By index: to tell one may connect, or lose another.
  for (size_t i = 0; i < links_.size(); ++i) {
    auto& link = *links_[i];
    if (!link.is_lost() || link.loss_is_told) continue;
    std::ranges::replace(by_number_, &link, nullptr);
    std::erase(polled_, &link);
    std::erase(paused_, &link);
    std::erase(awaiting_worker_, &link);
    if (!tell_loss(link)) work.lost_links = true;  // again with the next turn
  }
  const auto goes = [](const Link& link) { return link.loss_is_told && link.endpoints == 0 && link.holds == 0; };
  std::erase_if(pending_, [&](const Link* link) { return goes(*link); });
  for (const auto& link : links_)
    if (goes(*link)) add_ended(*link);
  std::erase_if(links_, [&](const auto& link) { return goes(*link); });
}

}  // namespace tc::node
