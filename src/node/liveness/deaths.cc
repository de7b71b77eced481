// SPDX-License-Identifier: Apache-2.0
#include "node/liveness/deaths.h"

#include <spdlog/logger.h>

#include "node/node.h"

namespace tc::node {

namespace {

// Witnesses of one death speak up within moments of each other; one question serves for all.
constexpr uint64_t ask_after_ns = 5'000'000;
// A snapshot that came to nothing is taken again: something was coming or going.
constexpr uint64_t ask_again_after_ns = 20'000'000;
constexpr size_t known_limit = 4096;

}  // namespace

Deaths::Deaths(Node& node)
    : node_(node), snapshots_(node, [this](bool is_void, const auto& alive) { on_snapshot(is_void, alive); }) {}

void Deaths::on_link_lost(const Link& link) {
  snapshots_.on_link_lost(link);
  const auto& peer = link.peer();
  // Closed here: nothing was on its way. Not in a cluster: nothing is forwarded there.
  if (link.reason().code == TC_ERR_CLOSED || peer.protocol == 0 || peer.node_id == Node::no_id) return;
  const wire::Gone gone{peer.instance, node_.instance(), peer.node_id, peer.name, link.reason().message};
  if (is_news(gone)) mourn(gone, nullptr);
}

void Deaths::on_gone(const Link& from, const wire::Gone& gone) {
  if (gone.instance == node_.instance() || !is_news(gone)) return;  // we are well: another's link to us broke
  node_.log().info("node {} ({}) is gone, says {}: {}", gone.node_id, gone.name, from.peer_label(), gone.reason);
  mourn(gone, &from);
}

bool Deaths::is_news(const wire::Gone& gone) {
  const std::pair key{gone.instance, gone.witness};
  if (!known_.insert(key).second) return false;
  known_order_.push_back(key);
  if (known_order_.size() > known_limit) {
    known_.erase(known_order_.front());
    known_order_.pop_front();
  }
  return true;
}

void Deaths::mourn(const wire::Gone& gone, const Link* from) {
  const auto notice = wire::encode_gone(gone);
  std::vector<Link*> links;
  node_.each_link([&](Link& link) {
    if (&link != from && link.state() == Link::State::ready) links.push_back(&link);
  });
  for (auto* link : links) link->post_notice(wire::notice_gone, notice);
  node_.futures().note_death(gone.node_id, fmt::format("node {} ({})", gone.node_id, gone.name));
  ask_soon();
}

void Deaths::ask_soon() {
  if (!node_.futures().empty() && ask_at_ns_ == 0) ask_at_ns_ = now_ns() + ask_after_ns;
}

void Deaths::tick() {
  if (ask_at_ns_ == 0 || now_ns() < ask_at_ns_) return;
  ask_at_ns_ = 0;
  asked_ = node_.futures().waiting();
  if (!asked_.empty()) snapshots_.ask();
}

void Deaths::on_snapshot(bool is_void, const std::unordered_set<uint64_t>& alive) {
  if (is_void) {
    if (ask_at_ns_ == 0) ask_at_ns_ = now_ns() + ask_again_after_ns;
    return;
  }
  for (const auto token : std::exchange(asked_, {}))
    if (!alive.contains(token)) node_.futures().fail_lost(token);
}

}  // namespace tc::node
