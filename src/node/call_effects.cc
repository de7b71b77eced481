// SPDX-License-Identifier: Apache-2.0
#include "node/call_effects.h"

#include "node/call_log.h"
#include "node/config.h"
#include "node/links.h"

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

// Does the caller, which waits for the answer, listen nowhere? Its answer would get lost with any link on the way here.
bool listens_nowhere(const target::Call& call, const Identity& self) noexcept {
  if (call.has_return_address) return false;
  return call.link != nullptr ? link_of(call)->peer().address.empty() : self.address.empty();
}

}  // namespace

// ---- The outcome of the call

void CallEffects::send_reply(const target::Call& call, ByteView bytes) {
  wire::Reply reply;
  reply.token = call.header.token;
  reply.node_id = common_.self.wire_id();
  reply.bytes = bytes;
  answers_.answer(call, reply);
}

void CallEffects::refuse(const target::Call& call, const Error& why) {
  wire::Reply reply;
  reply.token = call.header.token;
  reply.status = why.code;
  reply.node_id = common_.self.wire_id();
  reply.message = fmt::format("{}: {}", common_.self.label, why.message);
  answers_.count_failure(why, call.code);
  answers_.answer(call, reply);
}

tc_status_t CallEffects::reply(target::Call& call, ByteView bytes) noexcept {
  if (call.answered) return TC_ERR_INVALID;
  if (!call.wants_reply) return TC_OK;
  const auto status = without_exceptions([&] {
    send_reply(call, bytes);
    call.answered = true;
    call.has_effects = true;
    return TC_OK;
  });
  call.lost_reply = status != TC_OK;
  return status;
}

void CallEffects::fail(target::Call& call, int32_t code, std::string_view message) noexcept {
  if (call.failed) return;
  call.failed = true;
  call.has_effects = true;
  call.fail_code = code;
  call.fail_message.clear();
  (void)without_exceptions([&] { return call.fail_message = message.substr(0, 4096), TC_OK; });
}

// ---- Calls to other nodes

// On behalf of the same keys as the running code: an ifunc cannot choose others.
tc_status_t CallEffects::send(const Asker& asker, uint32_t node, OutgoingCall call) {
  const auto& rights = asker.rights;
  if (rights->chain != nullptr) {
    if (rights->chain->keys().size() > wire::Chain::most) {
      common_.call_log.warn(
          asker.call,
          fmt::format("ifunc '{}' may not travel on: it is called on behalf of {} keys, and {} may be named",
                      call.bundle->manifest().name, rights->chain->keys().size(), wire::Chain::most));
      return TC_ERR_LIMIT;
    }
    call.chain = &rights->chain;
  }
  if (Link* const known = links_.known(node); known != nullptr && known->sender().try_send(call)) return TC_OK;
  Status sent;
  if (node == common_.self.id) {
    const auto chain = rights->chain;
    sent = local_.add(call, rights, chain != nullptr ? links_.share_of({chain->keys().front()}) : nullptr);
  } else {
    const auto link = links_.to_node(node);
    if (!link) {
      common_.call_log.warn(asker.call,
                            fmt::format("ifunc '{}': {}", call.bundle->manifest().name, link.error().message));
      return link.error().code;
    }
    sent = (*link)->sender().send(call, Deadline::at_ns(0));  // no time to wait, and the clock is not read
  }
  if (sent) return TC_OK;
  common_.call_log.warn(
      asker.call, fmt::format("ifunc '{}' to node {}: {}", call.bundle->manifest().name, node, sent.error().message));
  return sent.error().code;
}

wire::CallHeader CallEffects::header_of(const target::Call& call) const noexcept {
  if (call.has_header) return call.header;
  wire::CallHeader header;
  header.hops_left = common_.config.hops;
  header.fanout_left = common_.config.fanout;
  return header;
}

// The return address of a call that goes on. An address that its peer may not name stays here, lest the next node connects
// to it on our word: the answer comes back by the links that the call takes.
wire::PackedReturnAddress CallEffects::caller_of(const target::Call& call) const {
  const auto& self = common_.self;
  if (call.has_return_address) {
    const auto& named = call.return_address.value();
    if (named.may_connect || named.address.empty()) return call.return_address;
    wire::PackedReturnAddress without({named.instance, named.node_id, {}});
    without.set_origin(named.came_by, false);
    return without;
  }
  if (call.link == nullptr) return wire::PackedReturnAddress({self.instance, self.wire_id(), self.address});
  const auto& link = *link_of(call);
  const auto& peer = link.peer();
  const bool is_its_own = link.receiver().is_believed() || link.channel().is_at_own_address();
  wire::PackedReturnAddress caller({peer.instance, peer.node_id, is_its_own ? peer.address : std::string()});
  caller.set_origin(link.id(), is_its_own);
  return caller;
}

// Code that was freed while it runs on another thread is known by its bundle alone.
tc_status_t CallEffects::forward(const Asker& asker, uint32_t node, ByteView payload) noexcept {
  const target::Code* const code = asker.call.code;
  const bool is_held = !code->has_other_threads || codes_.find(code->id()) == code;
  return without_exceptions([&] {
    return forward_call(asker, node,
                        {.bundle = code->bundle.get(), .code = is_held ? code : nullptr, .payload = payload});
  });
}

tc_status_t CallEffects::forward_as(const Asker& asker, uint32_t node, std::string_view name,
                                    ByteView payload) noexcept {
  return without_exceptions([&] {
    const auto bundle = codes_.called_by(*asker.call.code.get(), name);
    if (bundle) return forward_call(asker, node, {.bundle = *bundle, .payload = payload});
    common_.call_log.write(asker.call, 1, fmt::format("tc_forward_as: {}", bundle.error().message));
    return bundle.error().code;
  });
}

tc_status_t CallEffects::forward_call(const Asker& asker, uint32_t node, OutgoingCall next) {
  auto& call = asker.call;
  auto header = header_of(call);
  if (header.hops_left == 0) return TC_ERR_LIMIT;
  --header.hops_left;
  // The caller waits: the answer goes straight to it.
  std::optional<wire::PackedReturnAddress> caller;
  if (!call.wants_reply || call.answered)
    header.token = 0;
  else if (call.has_return_address && call.return_address.value().may_connect)
    next.return_address = &call.return_address;
  else
    next.return_address = &caller.emplace(caller_of(call));
  // Better told now than missed until the deadline.
  if (next.return_address != nullptr && node != common_.self.id && listens_nowhere(call, common_.self)) {
    common_.call_log.warn(
        call, fmt::format("ifunc '{}' may not travel on: the caller, which waits for its answer, listens nowhere",
                          call.code->name()));
    return TC_ERR_DISCONNECTED;
  }
  next.header = &header;
  const bool is_recorded = next.return_address != nullptr && node != common_.self.id;
  if (is_recorded && !links_.record_forwarded(call, header, next.return_address->value())) {
    common_.call_log.warn(call, fmt::format("ifunc '{}' may not travel on: too many calls of its link wait for answers "
                                            "that can come back through this node alone",
                                            call.code->name()));
    return TC_ERR_LIMIT;
  }
  const auto status = send(asker, node, next);
  if (status != TC_OK) {
    if (is_recorded) (void)links_.that_forwarded({header.token, next.return_address->value().instance});
    return status;
  }
  call.has_effects = true;
  call.answered = true;
  return TC_OK;
}

tc_status_t CallEffects::inject(const Asker& asker, uint32_t node, std::string_view name, ByteView payload) noexcept {
  return without_exceptions([&] { return inject_call(asker, node, name, payload); });
}

tc_status_t CallEffects::inject_call(const Asker& asker, uint32_t node, std::string_view name, ByteView payload) {
  auto& call = asker.call;
  const auto bundle = codes_.called_by(*call.code.get(), name);
  if (!bundle) {
    common_.call_log.write(call, 1, fmt::format("tc_inject: {}", bundle.error().message));
    return bundle.error().code;
  }
  auto header = header_of(call);
  if (header.fanout_left == 0 || header.hops_left == 0) return TC_ERR_LIMIT;
  // The new call may use half of what is left, so that all that comes of this call together stays in its limit.
  wire::CallHeader child;
  child.hops_left = static_cast<uint16_t>(header.hops_left - 1);
  child.fanout_left = static_cast<uint16_t>((header.fanout_left - 1) / 2);
  const auto status = send(asker, node, {.bundle = *bundle, .payload = payload, .header = &child});
  if (status != TC_OK) return status;
  header.fanout_left = static_cast<uint16_t>(header.fanout_left - 1 - child.fanout_left);
  call.header = header;
  call.has_header = true;
  call.has_effects = true;
  return TC_OK;
}

}  // namespace tc::node
