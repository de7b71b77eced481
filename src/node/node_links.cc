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
  TC_ASSIGN(auto connection, transport_->connect(address));
  auto& link = adopt(std::move(connection), true);
  if (const auto greeted = link.greet(); !greeted) {
    link.hang_up(greeted.error());
    return tc::fail(greeted.error());
  }
  return &link;
}

Result<Link*> Node::connect(std::string_view address, Deadline deadline) {
  if (inside_ifunc()) return tc::fail(TC_ERR_INVALID, "an ifunc that runs cannot wait for a connection");
  TC_ASSIGN(Link * link, reach(address));
  link->has_endpoint = true;  // until we return, nobody else may remove it
  poll_until(deadline, [&] { return link->state() != Link::State::greeting; });
  if (link->state() == Link::State::ready) return link;
  link->has_endpoint = false;
  auto error =
      link->state() == Link::State::lost ? link->reason() : Error{TC_ERR_TIMEOUT, "no answer within the deadline"};
  if (link->state() == Link::State::greeting) link->hang_up(error);
  remove_lost_links();
  return context(fmt::format("connecting to {}", address), std::move(error));
}

Status Node::close(Link& link, Deadline deadline) {
  if (inside_ifunc()) return tc::fail(TC_ERR_INVALID, "an ifunc that runs cannot close an endpoint");
  auto flushed = link.flush(deadline);
  link.say_goodbye();
  link.has_endpoint = false;
  links_lost_ = true;
  remove_lost_links();
  return flushed;
}

void Node::on_link_lost(Link& link) {
  std::ranges::replace(links_by_number_, &link, nullptr);
  links_lost_ = true;
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

void Node::remove_lost_links() {
  if (!links_lost_ || inside_ifunc()) return;
  links_lost_ = false;
  if (std::exchange(unsettled_link_, nullptr) != nullptr) unsettled_links_ = true;
  std::erase_if(links_, [](const auto& link) { return link->state() == Link::State::lost && !link->has_endpoint; });
}

void Node::on_accept(std::unique_ptr<transport::Connection> connection) { adopt(std::move(connection), false); }

void Node::on_control(transport::Connection& connection, ByteView frame) {
  look_at_all_ = true;  // a link that becomes ready, or ends, may hold frames already
  if (connection.owner() != nullptr) static_cast<Link*>(connection.owner())->on_control(frame);
}

void Node::on_lost(transport::Connection& connection, const Error& reason) {
  look_at_all_ = true;
  if (connection.owner() == nullptr) return;
  auto& link = *static_cast<Link*>(connection.owner());
  link.end(Error{reason.code, fmt::format("{} is gone: {}", link.peer_label(), reason.message)});
}

bool Node::trusts(Link& link) const { return config_.trust == Trust::any || is_here(link); }

// Is the peer a process of this host?
bool Node::is_here(const Link& link) const {
  if (transport_->name() == "loopback") return true;
  const auto address = link.connection().origin();
  return address.starts_with("127.") || address.starts_with("[::1]") || address.starts_with("::1");
}

Status Node::may_compile_for(const Link& link) const {
  if (config_.compile_for == CompileFor::none)
    return tc::fail(TC_ERR_DENIED, "{} compiles for nobody; start it with --compile-for loopback or any", label());
  if (link.trusted() && (config_.compile_for == CompileFor::any || is_here(link))) return {};
  return tc::fail(TC_ERR_DENIED,
                  "{} compiles for nodes of its own host only, and {} is none; start it with --compile-for any",
                  label(), link.peer_label());
}

Error Node::not_trusted(Link& link) const {
  return Error{TC_ERR_DENIED, fmt::format("code from {} is not trusted: without keys only peers on this host are; "
                                          "start the node with trust 'any' to run code from everywhere",
                                          link.connection().origin())};
}

Link* Node::link_to_instance(uint64_t instance) {
  const auto found = std::ranges::find_if(links_, [&](const auto& link) {
    return link->state() == Link::State::ready && link->peer().instance == instance;
  });
  return found != links_.end() ? found->get() : nullptr;
}

Link* Node::link_to_address(std::string_view address) {
  const auto found = std::ranges::find_if(links_, [&](const auto& link) {
    if (link->state() == Link::State::lost) return false;
    return link->state() == Link::State::ready ? link->peer().address == address
                                               : link->connection().peer_address() == address;
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
