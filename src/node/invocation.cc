// SPDX-License-Identifier: Apache-2.0
//
// What a running ifunc asks of its node.
#include <spdlog/logger.h>

#include <algorithm>

#include "node/node.h"

namespace tc::node {

namespace {

// What injected code asks of us: no exception goes through it.
template <class Body>
tc_status_t without_exceptions(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return TC_ERR_NO_MEMORY;
  } catch (const std::exception&) {
    return TC_ERR_INTERNAL;
  }
}

}  // namespace

uint32_t Node::wire_id() const noexcept { return config_.cluster.empty() && config_.id == 0 ? no_id : config_.id; }

void* Node::data(std::string_view name, size_t* size) noexcept {
  const auto found = std::ranges::find(exposed_, name, &Exposed::name);
  if (found == exposed_.end()) return nullptr;
  if (size != nullptr) *size = found->size;
  return found->data;
}

tc_status_t Node::reply(ByteView bytes) noexcept {
  auto& call = executor_.running();
  if (call.answered) return TC_ERR_INVALID;
  if (!call.wants_reply) return TC_OK;
  return without_exceptions([&] {
    wire::Reply reply;
    reply.token = call.ticket.token;
    reply.node_id = wire_id();
    reply.bytes = bytes;
    answer(static_cast<Link*>(call.link), call.has_route ? &call.route.route() : nullptr, reply);
    call.answered = true;
    call.touched = true;
    return TC_OK;
  });
}

wire::CallTicket Node::ticket_of(const target::Call& call) const noexcept {
  if (call.has_ticket) return call.ticket;
  wire::CallTicket ticket;
  ticket.hops_left = config_.hops;
  ticket.fanout_left = config_.fanout;
  return ticket;
}

tc_status_t Node::pass_on(uint32_t node, const Outgoing& call) {
  if (Link* const known = known_link(node); known != nullptr && known->try_pass_on(call)) return TC_OK;
  if (node == node_id()) {
    local_calls_.push_back({*call.bundle, Bytes(call.payload.begin(), call.payload.end()), *call.ticket,
                            call.route != nullptr ? std::optional(*call.route) : std::nullopt});
    return TC_OK;
  }
  const auto link = link_to(node);
  if (!link) {
    log_->warn("ifunc '{}': {}", call.bundle->manifest().name, link.error().message);
    return link.error().code;
  }
  const auto sent = (*link)->send_call(call, Deadline::at_ns(0));  // no time to wait, and no look at the clock
  if (sent) return TC_OK;
  log_->warn("ifunc '{}' to node {}: {}", call.bundle->manifest().name, node, sent.error().message);
  return sent.error().code;
}

tc_status_t Node::forward(uint32_t node, ByteView payload) noexcept {
  const target::Code* const code = executor_.running().code;
  return without_exceptions(
      [&] { return forward_call(node, {.bundle = code->bundle.get(), .code = code, .payload = payload}); });
}

tc_status_t Node::forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return without_exceptions([&] {
    const auto bundle = bundle_named(name);
    if (bundle) return forward_call(node, {.bundle = *bundle, .payload = payload});
    log_->info("tc_forward_as: {}", bundle.error().message);
    return bundle.error().code;
  });
}

// Of a call that came straight from who asked.
wire::Route Node::route_to_asker(const target::Call& call) const {
  if (call.link == nullptr) return {instance_, wire_id(), address_};
  const auto& peer = static_cast<Link*>(call.link)->peer();
  return {peer.instance, peer.node_id, peer.address};
}

tc_status_t Node::forward_call(uint32_t node, Outgoing next) {
  auto& call = executor_.running();
  auto ticket = ticket_of(call);
  if (ticket.hops_left == 0) return TC_ERR_LIMIT;
  --ticket.hops_left;
  // The first sender waits: the answer goes straight to it.
  std::optional<wire::PackedRoute> first;
  if (!call.wants_reply || call.answered)
    ticket.token = 0;
  else
    next.route = call.has_route ? &call.route : &first.emplace(route_to_asker(call));
  // Better told now than missed until the deadline: nobody else could bring the answer.
  if (next.route != nullptr && next.route->route().address.empty() && node != node_id()) {
    log_->warn("ifunc '{}' may not travel on: who waits for its answer listens nowhere", call.code->name());
    return TC_ERR_DISCONNECTED;
  }
  next.ticket = &ticket;
  const auto status = pass_on(node, next);
  if (status != TC_OK) return status;
  call.touched = true;
  call.answered = true;
  return TC_OK;
}

// What travels along with code is what that code was built with, whatever else has the same name here.
const Bundle* Node::companion_named(std::string_view name) {
  const auto& code = *executor_.running().code;
  if (const auto known = companions_.find(code.id()); known != companions_.end())
    if (const auto found = known->second.find(name); found != known->second.end()) return &found->second;
  if (!code.bundle->has_companion(name)) return nullptr;
  auto companion = code.bundle->companion(name);
  if (!companion) {
    log_->warn("{}", companion.error().message);
    return nullptr;
  }
  return &companions_[code.id()].emplace(name, std::move(*companion)).first->second;
}

Result<const Bundle*> Node::bundle_named(std::string_view name) {
  if (const auto* companion = companion_named(name)) return companion;
  if (const auto ifunc = registry_.find(std::string(name))) return &ifunc->bundle;
  if (const auto known = names_of_code_.find(name); known != names_of_code_.end())
    if (const auto* code = store_->find(known->second)) return code->bundle.get();
  return tc::fail(TC_ERR_NOT_FOUND, "{} knows no ifunc '{}'", label(), name);
}

tc_status_t Node::inject(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return without_exceptions([&] { return inject_call(node, name, payload); });
}

tc_status_t Node::inject_call(uint32_t node, std::string_view name, ByteView payload) {
  auto& call = executor_.running();
  const auto bundle = bundle_named(name);
  if (!bundle) {
    log_->info("tc_inject: {}", bundle.error().message);
    return bundle.error().code;
  }
  auto ticket = ticket_of(call);
  if (ticket.fanout_left == 0 || ticket.hops_left == 0) return TC_ERR_LIMIT;
  // The new call may use half of what is left, so that all that comes of this call together stays in its limit.
  wire::CallTicket child;
  child.hops_left = static_cast<uint16_t>(ticket.hops_left - 1);
  child.fanout_left = static_cast<uint16_t>((ticket.fanout_left - 1) / 2);
  const auto status = pass_on(node, {.bundle = *bundle, .payload = payload, .ticket = &child});
  if (status != TC_OK) return status;
  ticket.fanout_left = static_cast<uint16_t>(ticket.fanout_left - 1 - child.fanout_left);
  call.ticket = ticket;
  call.has_ticket = true;
  call.touched = true;
  return TC_OK;
}

void Node::fail(int32_t code, std::string_view message) noexcept {
  auto& call = executor_.running();
  if (call.failed) return;
  call.failed = true;
  call.touched = true;
  call.fail_code = code;
  call.fail_message.clear();
  (void)without_exceptions([&] { return call.fail_message = message.substr(0, 4096), TC_OK; });
}

void Node::log(int level, std::string_view message) noexcept {
  static constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                         spdlog::level::err};
  const auto* code = executor_.running().code.get();
  log_->log(levels[std::clamp(level, 0, 3)], "ifunc '{}': {}", code != nullptr ? code->name() : "?", message);
}

void Node::run_local_calls() {
  const target::Executor::Scope scope(executor_);
  // Only what is there now: a call that calls itself again gets its turn with the next poll.
  for (auto calls = std::exchange(local_calls_, {}); auto& call : calls) try {
      run_local(call);
    } catch (const std::bad_alloc&) {
      reserve_.release();
      executor_.reset();
      const auto* const route = call.route ? &call.route->route() : nullptr;
      answer_for(call.ticket.token, route, Error{TC_ERR_NO_MEMORY, "there is no memory for a call"});
    }
}

void Node::run_local(LocalCall& local) {
  auto& call = executor_.running();
  executor_.reset();
  call.link = nullptr;
  call.ticket = local.ticket;
  call.has_ticket = true;
  call.wants_reply = local.ticket.token != 0;
  call.has_route = local.route.has_value();
  if (local.route) call.route = *local.route;
  call.touched = true;
  auto* code = store_->find(local.bundle.id());
  if (code == nullptr) {
    const auto loaded = code_loader_.load(local.bundle, {}, CodeLoader::this_node);
    if (loaded.is_pending()) {
      uncompiled_calls_.push_back(std::move(local));
      return executor_.reset();
    }
    if (loaded.is_error()) {
      answer_for(call.ticket.token, call.has_route ? &call.route.route() : nullptr, loaded.error);
      return executor_.reset();
    }
    code = loaded.code;
  }
  Bytes memory;
  auto* const payload = aligned_copy(memory, local.payload, size_t{1} << code->alignment_log2);
  executor_.run_plain(*code, payload, local.payload.size());
  end_running_call();
}

}  // namespace tc::node
