// SPDX-License-Identifier: Apache-2.0
#include "node/invocation.h"

#include <spdlog/logger.h>

#include <algorithm>

#include "node/authority.h"
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

}  // namespace

// ---- Data

void Invocation::expose(std::string name, void* data, size_t size) {
  std::erase_if(exposed_, [&](const auto& exposed) { return exposed.name == name; });
  if (data != nullptr) exposed_.push_back({std::move(name), data, size});
}

void* Invocation::data(std::string_view name, size_t* size) noexcept {
  const auto found = std::ranges::find(exposed_, name, &Exposed::name);
  if (found == exposed_.end()) return nullptr;
  if (const auto& rights = *running_rights(); !rights.is_all() && !may_touch(rights, name)) [[unlikely]]
    return nullptr;
  if (size != nullptr) *size = found->size;
  return found->data;
}

const trust::SharedRights& Invocation::running_rights() const {
  const auto& call = executor_.running();
  if (call.link == nullptr) return local_.running_rights();
  return link_of(call)->receiver().rights_of(call.code.get());
}

// A key with the right to read gets the same pointer: only a cell could keep code in this process from writing.
bool Invocation::may_touch(const trust::CodeRights& rights, std::string_view data) noexcept try {
  if (rights.may_read(data) || rights.may_write(data)) return true;
  const auto* const code = executor_.running().code.get();
  authority_.log_denial(fmt::format("ifunc '{}'", code != nullptr ? code->name() : "?"), rights.may_read(data).error());
  return false;
} catch (const std::bad_alloc&) {
  return false;
}

// ---- The outcome of the running call

tc_status_t Invocation::reply(ByteView bytes) noexcept {
  auto& call = executor_.running();
  if (call.answered) return TC_ERR_INVALID;
  if (!call.wants_reply) return TC_OK;
  return without_exceptions([&] {
    wire::Reply reply;
    reply.token = call.header.token;
    reply.node_id = common_.self.wire_id();
    reply.bytes = bytes;
    answers_.answer(call, reply);
    call.answered = true;
    call.has_effects = true;
    return TC_OK;
  });
}

void Invocation::fail(int32_t code, std::string_view message) noexcept {
  auto& call = executor_.running();
  if (call.failed) return;
  call.failed = true;
  call.has_effects = true;
  call.fail_code = code;
  call.fail_message.clear();
  (void)without_exceptions([&] { return call.fail_message = message.substr(0, 4096), TC_OK; });
}

void Invocation::log(int level, std::string_view message) noexcept {
  static constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                         spdlog::level::err};
  const auto* const code = executor_.running().code.get();
  common_.log.log(levels[std::clamp(level, 0, 3)], "ifunc '{}': {}", code != nullptr ? code->name() : "?", message);
}

// ---- Calls to other nodes

// On behalf of the same keys as the running code: an ifunc cannot choose others.
tc_status_t Invocation::send(uint32_t node, OutgoingCall call) {
  const auto& rights = running_rights();
  if (rights->chain != nullptr) {
    if (rights->chain->keys().size() > wire::Chain::most) {
      common_.log.warn("ifunc '{}' may not travel on: it is called on behalf of {} keys, and {} may be named",
                       call.bundle->manifest().name, rights->chain->keys().size(), wire::Chain::most);
      return TC_ERR_LIMIT;
    }
    call.chain = &rights->chain;
  }
  if (Link* const known = links_.known(node); known != nullptr && known->sender().try_send(call)) return TC_OK;
  if (node == node_id()) return local_.add(call, rights), TC_OK;
  const auto link = links_.to_node(node);
  if (!link) {
    common_.log.warn("ifunc '{}': {}", call.bundle->manifest().name, link.error().message);
    return link.error().code;
  }
  const auto sent = (*link)->sender().send(call, Deadline::at_ns(0));  // no time to wait, and the clock is not read
  if (sent) return TC_OK;
  common_.log.warn("ifunc '{}' to node {}: {}", call.bundle->manifest().name, node, sent.error().message);
  return sent.error().code;
}

wire::CallHeader Invocation::header_of(const target::Call& call) const noexcept {
  if (call.has_header) return call.header;
  wire::CallHeader header;
  header.hops_left = common_.config.hops;
  header.fanout_left = common_.config.fanout;
  return header;
}

// Of a call that came straight from its caller.
wire::ReturnAddress Invocation::caller_of(const target::Call& call) const {
  if (call.link == nullptr) return {common_.self.instance, common_.self.wire_id(), common_.self.address};
  const auto& peer = link_of(call)->peer();
  return {peer.instance, peer.node_id, peer.address};
}

tc_status_t Invocation::forward(uint32_t node, ByteView payload) noexcept {
  const target::Code* const code = executor_.running().code;
  return without_exceptions(
      [&] { return forward_call(node, {.bundle = code->bundle.get(), .code = code, .payload = payload}); });
}

tc_status_t Invocation::forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return without_exceptions([&] {
    const auto bundle = codes_.called_by(*executor_.running().code.get(), name);
    if (bundle) return forward_call(node, {.bundle = *bundle, .payload = payload});
    common_.log.info("tc_forward_as: {}", bundle.error().message);
    return bundle.error().code;
  });
}

tc_status_t Invocation::forward_call(uint32_t node, OutgoingCall next) {
  auto& call = executor_.running();
  auto header = header_of(call);
  if (header.hops_left == 0) return TC_ERR_LIMIT;
  --header.hops_left;
  // The caller waits: the answer goes straight to it.
  std::optional<wire::PackedReturnAddress> first;
  if (!call.wants_reply || call.answered)
    header.token = 0;
  else
    next.return_address = call.has_return_address ? &call.return_address : &first.emplace(caller_of(call));
  // Better told now than missed until the deadline: no other node could bring the answer.
  if (next.return_address != nullptr && next.return_address->value().address.empty() && node != node_id()) {
    common_.log.warn("ifunc '{}' may not travel on: the caller, which waits for its answer, listens nowhere",
                     call.code->name());
    return TC_ERR_DISCONNECTED;
  }
  next.header = &header;
  const auto status = send(node, next);
  if (status != TC_OK) return status;
  call.has_effects = true;
  call.answered = true;
  return TC_OK;
}

tc_status_t Invocation::inject(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return without_exceptions([&] { return inject_call(node, name, payload); });
}

tc_status_t Invocation::inject_call(uint32_t node, std::string_view name, ByteView payload) {
  auto& call = executor_.running();
  const auto bundle = codes_.called_by(*call.code.get(), name);
  if (!bundle) {
    common_.log.info("tc_inject: {}", bundle.error().message);
    return bundle.error().code;
  }
  auto header = header_of(call);
  if (header.fanout_left == 0 || header.hops_left == 0) return TC_ERR_LIMIT;
  // The new call may use half of what is left, so that all that comes of this call together stays in its limit.
  wire::CallHeader child;
  child.hops_left = static_cast<uint16_t>(header.hops_left - 1);
  child.fanout_left = static_cast<uint16_t>((header.fanout_left - 1) / 2);
  const auto status = send(node, {.bundle = *bundle, .payload = payload, .header = &child});
  if (status != TC_OK) return status;
  header.fanout_left = static_cast<uint16_t>(header.fanout_left - 1 - child.fanout_left);
  call.header = header;
  call.has_header = true;
  call.has_effects = true;
  return TC_OK;
}

}  // namespace tc::node
