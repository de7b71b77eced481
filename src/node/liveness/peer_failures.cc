// SPDX-License-Identifier: Apache-2.0
#include "node/liveness/peer_failures.h"

#include <spdlog/logger.h>

#include "node/links.h"

namespace tc::node {

namespace {

// The peers of a node that failed tell of it within moments of each other; one question serves for all.
constexpr uint64_t ask_after_ns = 5'000'000;
// A snapshot that came to nothing is taken again: something was coming or going.
constexpr uint64_t ask_again_after_ns = 20'000'000;
constexpr size_t known_limit = 4096;

}  // namespace

PeerFailures::PeerFailures(const Common& common, Links& links, FutureTable& futures, Snapshots::EachCall each_call)
    : common_(common),
      links_(links),
      futures_(futures),
      snapshots_(links, common.self, std::move(each_call),
                 [this](bool is_void, const auto& alive) { on_snapshot(is_void, alive); }) {}

Status PeerFailures::on_event(Link& from, uint32_t what, ByteView body) {
  if (what == wire::event_gone) {
    TC_ASSIGN(const auto gone, wire::decode_gone(body));
    on_gone(from, gone);
  } else if (what == wire::event_marker) {
    TC_ASSIGN(const auto marker, wire::decode_marker(body));
    snapshots_.on_marker(from, marker);
  } else if (what == wire::event_report) {
    TC_ASSIGN(const auto report, wire::decode_report(body));
    snapshots_.on_report(from, report);
  } else {
    return fail(TC_ERR_MALFORMED, "a cluster event is of type {} when 0 to 2 are known", what);
  }
  return {};
}

void PeerFailures::on_link_lost(const Link& link) {
  snapshots_.on_link_lost(link);
  const auto& peer = link.peer();
  // Closed here, or by both: nothing was on its way. Not in a cluster: nothing is forwarded there.
  if (link.reason().code == TC_ERR_CLOSED || link.ended_in_order || peer.protocol == 0 ||
      peer.node_id == Identity::no_id)
    return;
  // Which node it was is its own word: the others hear that only of one that proved it, or is believed.
  if (!link.receiver().is_believed() && !link.channel().is_proven()) return;
  const wire::Gone gone{peer.instance, common_.self.instance + links_lost_++, peer.node_id, peer.name,
                        link.reason().message};
  if (is_news(gone)) spread(gone, nullptr);
}

void PeerFailures::on_gone(const Link& from, const wire::Gone& gone) {
  if (!is_news(gone)) return;
  if (gone.instance ==
      common_.self.instance)  // we are well: another's link to us broke, and what came by it may be lost
    common_.log.info("a node has lost its connection to this one, says {}: {}", from.peer_label(), gone.reason);
  else
    common_.log.info("node {} ({}) is gone, says {}: {}", gone.node_id, gone.name, from.peer_label(), gone.reason);
  spread(gone, &from);
}

bool PeerFailures::is_news(const wire::Gone& gone) {
  const std::pair key{gone.instance, gone.witness};
  if (!known_.insert(key).second) return false;
  known_order_.push_back(key);
  if (known_order_.size() > known_limit) {
    known_.erase(known_order_.front());
    known_order_.pop_front();
  }
  return true;
}

void PeerFailures::spread(const wire::Gone& gone, const Link* from) {
  const auto notice = wire::encode_gone(gone);
  links_.each([&](Link& link) {
    if (&link != from && link.is_ready()) link.post_event(wire::event_gone, notice);
  });
  futures_.record_peer_failure(gone.node_id, gone.instance == common_.self.instance
                                                 ? std::string("a connection to this node")
                                                 : fmt::format("node {} ({})", gone.node_id, gone.name));
  ask_soon();
}

void PeerFailures::ask_soon() {
  if (!futures_.empty() && ask_at_ns_ == 0) ask_at_ns_ = now_ns() + ask_after_ns;
}

void PeerFailures::tick() {
  if (ask_at_ns_ == 0 || now_ns() < ask_at_ns_) return;
  ask_at_ns_ = 0;
  asked_ = futures_.maybe_lost();
  if (!asked_.empty()) snapshots_.ask();
}

void PeerFailures::on_snapshot(bool is_void, const std::unordered_set<uint64_t>& alive) {
  if (is_void) {
    if (ask_at_ns_ == 0) ask_at_ns_ = now_ns() + ask_again_after_ns;
    return;
  }
  for (const auto token : std::exchange(asked_, {}))
    if (!alive.contains(token)) futures_.fail_lost(token);
}

}  // namespace tc::node
