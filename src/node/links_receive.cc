// SPDX-License-Identifier: Apache-2.0
//
// What the transport tells, what came by the links, and links that were lost.
#include <spdlog/logger.h>

#include <algorithm>
#include <new>

#include "node/authority.h"
#include "node/link/slice_requests.h"
#include "node/links.h"
#include "node/liveness/peer_failures.h"
#include "node/liveness/watchdog.h"
#include "node/remote_compile/compile_requests.h"
#include "node/remote_compile/compiles_for_peers.h"

namespace tc::node {

// ---- What the transport tells

Status Links::may_connect(const transport::Origin& origin) {
  TC_CHECK(services_.authority.rights_of(origin));
  return {};
}

Status Links::is_expected(std::string_view address, const transport::Origin& origin) {
  return services_.authority.is_expected(address, origin, expected_at(address));
}

void Links::on_accept(std::unique_ptr<transport::Connection> connection, ByteView hello) {
  if (is_leaving_) return connection->refuse(Error{TC_ERR_CLOSED, "this node ends"});
  accept(adopt(std::move(connection), false), hello);
}

void Links::on_greeting(transport::Connection& connection, ByteView hello) {
  accept(*static_cast<Link*>(connection.owner()), hello);
}

void Links::accept(Link& link, ByteView hello) try {
  if (const auto accepted = link.accept(hello, own_greeting()); !accepted)
    return link.channel().disconnect(accepted.error());
  // What let us in is the node there; what refused us may have been anything.
  if (!link.channel().is_accepted() && !link.meets_nobody)
    services_.authority.remember(link.channel().connection().peer_address(), link.channel().origin());
  if (link.channel().is_accepted())
    link.channel().set_stands_for_address(
        services_.authority.may_stand_for(link.peer().address, link.channel().origin()));
  if (link.channel().connection().is_polled()) polled_.push_back(&link);
  settle_on_one(link);
} catch (const std::bad_alloc&) {
  give_up(link);
}

void Links::on_frames(transport::Connection& connection) {
  if (connection.owner() != nullptr) receive_from(*static_cast<Link*>(connection.owner()));
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
  ++services_.counters.refused_peers;
  if (refusals_.record(now_ns())) services_.channel.log.warn("{} is refused: {}", who, why.message);
}

uint64_t Links::take_unsaid_refusals() noexcept { return refusals_.take_unsaid(now_ns()); }

void Links::on_warning(const std::string& what) noexcept { services_.channel.log.warn("{}", what); }

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

// ---- Peers that send more than they may, or than they read

void Links::pause(Link& link, uint64_t until_ns) {
  if (link.paused_until_ns == 0) {
    paused_.push_back(&link);
    link.channel().connection().set_paused(true);
    ++services_.counters.throttled;
    services_.channel.work.paused_links = true;
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
  services_.channel.work.paused_links = !paused_.empty();
  return resumed;
}

uint64_t Links::next_resume_ns() const noexcept {
  uint64_t next = UINT64_MAX;
  for (const auto* const link : paused_) next = std::min(next, link->paused_until_ns);
  return next;
}

// ---- Peers that may do more or less than before

// A server that we connected to need not be allowed to connect itself; but a key that is expired or revoked is not called.
void Links::record_uses() {
  for (const auto& link : links_)
    if (link->is_ready()) link->record_use();
}

void Links::renew_rights(std::span<const trust::PublicKey> lost) {
  auto& authority = services_.authority;
  const auto conflicts = authority.take_conflicts();
  const auto has_key_of = [](const transport::Origin& origin, std::span<const trust::PublicKey> keys) {
    return origin.key && std::ranges::find(keys, *origin.key) != keys.end();
  };
  const auto may_be_called = [&](const Link& link, const transport::Origin& origin) -> Status {
    TC_CHECK(authority.is_valid(origin));
    if (has_key_of(origin, conflicts))
      TC_CHECK(authority.is_expected(link.channel().connection().peer_address(), origin));
    if (has_key_of(origin, lost)) TC_CHECK(authority.rights_of(origin));
    return {};
  };
  for (size_t i = 0; i < links_.size(); ++i) {
    auto& link = *links_[i];
    if (!link.is_ready()) continue;
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
  executor.next_tick();
  if (executor.watcher_dozes()) [[unlikely]]
    watchdog_.wake();
  const target::Executor::Scope scope(executor);
  try {
    return link.receive();
  } catch (const std::bad_alloc&) {
    executor.reset();
    give_up(link);
    return 1;
  }
}

size_t Links::drain_backlogs() {
  size_t resumed = 0;
  for (size_t i = 0; i < links_.size(); ++i) {
    auto& link = *links_[i];
    if (link.drain_backlog()) ++resumed;
    if (link.channel().has_backlog() || link.closing_endpoints != 0) services_.channel.work.backlog = true;
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
  services_.channel.log.warn(
      "{} bytes of frames and {} calls for {} are lost: they waited to be sent when the link was closed",
      channel.backlog_bytes(), link.sender().waiting(), link.peer_label());
} catch (const std::exception&) {  // no memory for the sentence
}

// ---- Losing

void Links::give_up(Link& link) noexcept {
  reserve_.release();
  try {
    link.channel().disconnect(
        Error{TC_ERR_NO_MEMORY, fmt::format("there is no memory for what {} sends", link.peer_label())});
  } catch (const std::bad_alloc&) {
    link.channel().disconnect(Error{TC_ERR_NO_MEMORY, "no memory"});
  }
}

void Links::log_loss(const Link& link) noexcept try {
  ++services_.counters.dropped_links;
  if (link.is_awaited)
    services_.channel.log.info("link to {} was not made: {}", link.peer_label(), link.reason().message);
  else if (link.reason().code == TC_ERR_DISCONNECTED)
    services_.channel.log.info("link to {} ended: {}", link.peer_label(), link.reason().message);
  else
    services_.channel.log.warn("link to {} dropped: {}", link.peer_label(), link.reason().message);
} catch (const std::exception&) {  // no memory for the sentence
}

// False: memory ran out on the way. Each step can be taken again.
bool Links::tell_loss(Link& link) noexcept try {
  if (link.reason().code == TC_ERR_CLOSED) log_unsent(link);
  link.fail_waiting();
  services_.slices.on_link_lost(link);
  services_.compile_requests.on_link_lost(link);
  services_.compiles_for_peers.forget(link.id());
  futures_.fail_those(link.futures, link.reason());
  services_.peer_failures.on_link_lost(link);
  if (link.reason().code != TC_ERR_CLOSED) log_loss(link);
  return link.loss_is_told = true;
} catch (const std::bad_alloc&) {
  reserve_.release();
  return false;
}

void Links::handle_losses() {
  auto& work = services_.channel.work;
  if (!work.lost_links || services_.executor.inside_call()) return;
  work.lost_links = false;
  // By index: to tell one may connect, or lose another.
  for (size_t i = 0; i < links_.size(); ++i) {
    auto& link = *links_[i];
    if (!link.is_lost() || link.loss_is_told) continue;
    std::ranges::replace(by_number_, &link, nullptr);
    std::erase(polled_, &link);
    std::erase(paused_, &link);
    if (!tell_loss(link)) work.lost_links = true;  // again with the next turn
  }
  const auto goes = [](const Link& link) { return link.loss_is_told && link.endpoints == 0 && link.holds == 0; };
  std::erase_if(pending_, [&](const Link* link) { return goes(*link); });
  std::erase_if(links_, [&](const auto& link) { return goes(*link); });
}

}  // namespace tc::node
