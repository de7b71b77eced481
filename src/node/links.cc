// SPDX-License-Identifier: Apache-2.0
//
// Connecting, and finding the link to a node.
#include "node/links.h"

#include <spdlog/logger.h>
#include <threechains/ifunc.h>

#include <algorithm>

#include "base/random.h"
#include "node/authority.h"
#include "node/busy_retries.h"

namespace tc::node {

namespace {

template <class Matches>
Link* find(const std::vector<std::unique_ptr<Link>>& links, const Matches& matches) {
  const auto found = std::ranges::find_if(links, [&](const auto& link) { return matches(*link); });
  return found != links.end() ? found->get() : nullptr;
}

// Every peer learns our instance and might claim it at another node.
bool are_of_one_peer(const transport::Origin& one, const transport::Origin& other) noexcept {
  return one.key == other.key;
}

}  // namespace

// What this node tells a peer of itself.
Bytes Links::own_greeting() const {
  const auto& self = services_.channel.self;
  wire::Hello hello;
  hello.protocol = wire::protocol_version;
  hello.abi = TC_IFUNC_ABI;
  hello.instance = self.instance;
  hello.node_id = self.wire_id();
  hello.max_message = services_.config.max_message;
  hello.name = self.name;
  hello.address = self.address;
  hello.triple = services_.config.code.triple.text;
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
  const auto& cluster = services_.channel.self.cluster;
  if (transport_->is_by_name(address) && std::ranges::find(cluster, address) == cluster.end())
    return fail(TC_ERR_DENIED, "{} is a name, and answers go to addresses that are numbers", address);
  caller_at_ = address;
  caller_key_ = chain != nullptr ? std::optional(trust::PublicKey{chain->keys().front()}) : std::nullopt;
  auto reached = reach(address);
  caller_at_ = {};
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
  return context(fmt::format("connecting to {}", address), std::move(error));
}

Status Links::close(Link& link, Deadline deadline) {
  if (!services_.channel.waiter.may_wait() || services_.executor.inside_call()) {
    ++link.closing_endpoints;
    link.closing_flush = {};
    link.close_by_ns = std::max(link.close_by_ns, deadline.at_ns());
    services_.channel.work.backlog = true;  // continue_closing()
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
    futures_.fail_those(link.futures, Error{TC_ERR_CLOSED, "the endpoint was closed here"});
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
  for (const auto& link : links_)
    if (link->is_ready() && link->is_released_by_peer()) on_released_by_peer(*link);
}

// Of endpoints that were closed where nobody could wait.
void Links::continue_closing(Link& link) {
  if (link.advance(link.closing_flush) || now_ns() >= link.close_by_ns)
    end_endpoints(link, std::exchange(link.closing_endpoints, 0));
}

Result<Link*> Links::at(std::string_view address) {
  if (Link* const known = to_address(address)) return known;
  return reach(address);
}

Result<Link*> Links::to_node(uint32_t node) {
  if (Link* const link = known(node); link != nullptr && !link->is_lost()) return link;
  const auto& cluster = services_.channel.self.cluster;
  if (node < cluster.size()) {
    by_number_.resize(cluster.size());
    TC_ASSIGN(by_number_[node], at(cluster[node]));
    return by_number_[node];
  }
  if (cluster.empty())
    if (Link* const link = find(links_, [&](const Link& other) {
          return other.is_ready() && !other.is_ending() && other.peer().node_id == node;
        }))
      return link;
  const auto& self = services_.channel.self;
  return fail(TC_ERR_NOT_FOUND, "there is no node {}: {} knows {} nodes", node, self.label, self.count());
}

// An instance number is what the peer says of itself. One that may not be believed must be at that address as well.
Link* Links::ready_to(const wire::ReturnAddress& to) const noexcept {
  return find(links_, [&](Link& link) {
    return link.is_ready() && link.peer().instance == to.instance && (!link.is_ending() || to.address.empty()) &&
           (link.receiver().is_believed() || to.address.empty() || link.channel().leads_to(to.address));
  });
}

Link* Links::to_address(std::string_view address) const noexcept {
  return find(links_, [&](const Link& link) {
    return !link.is_lost() && !link.is_ending() && link.channel().leads_to(address);
  });
}

// A link by which whoever listens there connected to us.
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
  const bool prefers_accepted = instance < services_.channel.self.instance;
  Link* const better = link.channel().is_accepted() == prefers_accepted ? &link : other;
  std::ranges::replace(by_number_, better == &link ? other : &link, better);
}

}  // namespace tc::node
