// SPDX-License-Identifier: Apache-2.0
//
// Connecting, losing, and finding the link to a node.
#include <spdlog/logger.h>

#include <algorithm>

#include "node/node.h"

namespace tc::node {

Link& Node::adopt(std::unique_ptr<transport::Connection> connection, bool initiator) {
  links_.push_back(std::make_unique<Link>(*this, std::move(connection), initiator));
  return *links_.back();
}

// Starts a connection; frames queue until it is ready.
Result<Link*> Node::reach(std::string_view address) {
  TC_ASSIGN(auto connection, transport_->connect(address, Link::hello_of(*this)));
  return &adopt(std::move(connection), true);
}

Result<Link*> Node::connect(std::string_view address, Deadline deadline) {
  if (inside_ifunc()) return tc::fail(TC_ERR_INVALID, "an ifunc that runs cannot wait for a connection");
  // One connection serves both ways: over TCP, what goes back acknowledges what came.
  if (Link* const theirs = accepted_from(address)) {
    ++theirs->endpoints;
    return theirs;
  }
  TC_ASSIGN(Link * link, reach(address));
  link->endpoints = 1;  // until we return, nobody else may remove it
  poll_until(deadline, [&] { return link->state() != Link::State::greeting; });
  if (link->state() == Link::State::ready) return link;
  link->endpoints = 0;
  auto error =
      link->state() == Link::State::lost ? link->reason() : Error{TC_ERR_TIMEOUT, "no answer within the deadline"};
  if (link->state() == Link::State::greeting) link->hang_up(error);
  remove_lost_links();
  return context(fmt::format("connecting to {}", address), std::move(error));
}

Status Node::close(Link& link, Deadline deadline) {
  if (inside_ifunc()) return tc::fail(TC_ERR_INVALID, "an ifunc that runs cannot close an endpoint");
  auto flushed = link.flush(deadline);
  if (--link.endpoints == 0 && !link.is_accepted()) link.say_goodbye();
  links_lost_ = true;
  remove_lost_links();
  return flushed;
}

void Node::on_link_lost(Link& link) {
  std::ranges::replace(links_by_number_, &link, nullptr);
  std::erase(polled_links_, &link);
  slices_.on_link_lost(link);
  compile_requests_.on_link_lost(link);
  if (compile_service_) compile_service_->forget(link.mark());
  futures_.fail_link(link, link.reason());
  deaths_.on_link_lost(link);
  if (link.reason().code == TC_ERR_CLOSED) return;
  ++counters_.dropped_links;
  if (link.reason().code == TC_ERR_DISCONNECTED)
    log_->info("link to {} ended: {}", link.peer_label(), link.reason().message);
  else
    log_->warn("link to {} dropped: {}", link.peer_label(), link.reason().message);
}

Link* Node::link_marked(uint64_t mark) {
  const auto found = std::ranges::find_if(links_, [&](const auto& link) { return link->mark() == mark; });
  return found != links_.end() && (*found)->state() == Link::State::ready ? found->get() : nullptr;
}

Result<Link*> Node::link_at(std::string_view address) {
  if (Link* const known = link_to_address(address)) return known;
  return reach(address);
}

void Node::each_link(const std::function<void(Link&)>& show) {
  for (size_t i = 0; i < links_.size(); ++i) show(*links_[i]);
}

void Node::give_up(Link& link) noexcept {
  reserve_.release();
  link.end_for_memory();
}

// Losses of which not everybody could be told for lack of memory.
void Node::finish_losses() noexcept {
  for (const auto& link : links_) {
    if (link->state() != Link::State::lost || link->loss_is_told()) continue;
    link->end_for_memory();
    if (!link->loss_is_told()) links_lost_ = true;  // again with the next turn
  }
}

void Node::remove_lost_links() {
  if (!links_lost_ || inside_ifunc()) return;
  links_lost_ = false;
  finish_losses();
  const auto goes = [](const Link& link) { return link.loss_is_told() && link.endpoints == 0; };
  std::erase_if(pending_, [&](const Link* link) { return goes(*link); });
  std::erase_if(links_, [&](const auto& link) { return goes(*link); });
}

// ---- What the transport tells

Status Node::may_connect(const transport::Origin& origin) {
  if (trusts(origin)) return {};
  return tc::fail(not_trusted(origin));
}

void Node::on_accept(std::unique_ptr<transport::Connection> connection, ByteView hello) {
  meet(adopt(std::move(connection), false), hello);
}

void Node::on_greeting(transport::Connection& connection, ByteView hello) {
  meet(*static_cast<Link*>(connection.owner()), hello);
}

void Node::meet(Link& link, ByteView hello) try {
  if (const auto accepted = link.accept_hello(hello); !accepted) return link.hang_up(accepted.error());
  if (link.connection().is_polled()) polled_links_.push_back(&link);
  settle_on_one(link);
} catch (const std::bad_alloc&) {
  give_up(link);
}

// Two nodes that connect to each other at the same time have two connections. Both use the one of the smaller instance
// from then on, so that what goes back acknowledges what came.
void Node::settle_on_one(Link& link) {
  const auto instance = link.peer().instance;
  const auto found = std::ranges::find_if(links_, [&](const auto& other) {
    return other.get() != &link && other->state() == Link::State::ready && other->peer().instance == instance;
  });
  if (found == links_.end() || link.is_accepted() == (*found)->is_accepted()) return;
  const bool prefers_accepted = instance < instance_;
  Link* const better = link.is_accepted() == prefers_accepted ? &link : found->get();
  std::ranges::replace(links_by_number_, better == &link ? found->get() : &link, better);
}

void Node::on_frames(transport::Connection& connection) {
  if (connection.owner() != nullptr) receive_from(*static_cast<Link*>(connection.owner()));
}

void Node::on_lost(transport::Connection& connection, const Error& reason) noexcept {
  if (connection.owner() == nullptr) return;
  auto& link = *static_cast<Link*>(connection.owner());
  try {
    const bool was_there = link.state() == Link::State::ready;
    link.end(
        Error{reason.code, fmt::format("{}{}: {}", link.peer_label(), was_there ? " is gone" : "", reason.message)});
  } catch (const std::bad_alloc&) {
    give_up(link);
  }
}

void Node::on_refused(const std::string& who, const Error& why) noexcept {
  ++counters_.refused_strangers;
  if (refusals_.note(now_ns())) log_->warn("{} is refused: {}", who, why.message);
}

void Node::on_warning(const std::string& what) noexcept { log_->warn("{}", what); }

// ---- Trust

bool Node::trusts(const transport::Origin& origin) const noexcept {
  return config_.trust == Trust::any || origin.same_user;
}

Error Node::not_trusted(const transport::Origin& origin) const {
  return Error{TC_ERR_DENIED,
               fmt::format("{} is not trusted: without keys only processes of the same user on this host "
                           "are; start the node with trust 'any' to let in everybody",
                           origin.text)};
}

Status Node::may_compile_for(const Link& link) const {
  if (config_.compile_for == CompileFor::none)
    return tc::fail(TC_ERR_DENIED, "{} compiles for nobody; start it with --compile-for user or any", label());
  if (link.trusted() && (config_.compile_for == CompileFor::any || link.connection().origin().same_user)) return {};
  return tc::fail(TC_ERR_DENIED,
                  "{} compiles for processes of its own user on this host only, and {} is none; start it with "
                  "--compile-for any",
                  label(), link.peer_label());
}

// ---- Finding links

Link* Node::link_to_instance(uint64_t instance) {
  const auto found = std::ranges::find_if(links_, [&](const auto& link) {
    return link->state() == Link::State::ready && link->peer().instance == instance;
  });
  return found != links_.end() ? found->get() : nullptr;
}

Link* Node::link_to_address(std::string_view address) {
  const auto found = std::ranges::find_if(
      links_, [&](const auto& link) { return link->state() != Link::State::lost && link->leads_to(address); });
  return found != links_.end() ? found->get() : nullptr;
}

Link* Node::accepted_from(std::string_view address) {
  const auto found = std::ranges::find_if(links_, [&](const auto& link) {
    return link->is_accepted() && link->state() == Link::State::ready && link->leads_to(address);
  });
  return found != links_.end() ? found->get() : nullptr;
}

// Nodes connect when they first have something to say to each other.
Result<Link*> Node::link_to(uint32_t node) {
  if (Link* const known = known_link(node)) return known;
  if (node < config_.cluster.size()) {
    links_by_number_.resize(config_.cluster.size());
    const auto& address = config_.cluster[node];
    Link* link = link_to_address(address);
    if (link == nullptr) {
      TC_ASSIGN(link, reach(address));
    }
    return links_by_number_[node] = link;
  }
  const auto found = std::ranges::find_if(links_, [&](const auto& link) {
    return config_.cluster.empty() && link->state() == Link::State::ready && link->peer().node_id == node;
  });
  if (found != links_.end()) return found->get();
  return tc::fail(TC_ERR_NOT_FOUND, "there is no node {}: {} knows {} nodes", node, label(), node_count());
}

}  // namespace tc::node
