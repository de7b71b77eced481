// SPDX-License-Identifier: Apache-2.0
//
// Registering, calling, and the way of answers.
#include <spdlog/logger.h>

#include "base/file.h"
#include "node/node.h"

namespace tc::node {

Result<std::shared_ptr<source::Ifunc>> Node::register_file(const std::string& name) {
  TC_ASSIGN(const auto file, registry_.find_file(name));
  TC_ASSIGN(const auto bytes, read_file(file, BundleLimits::bundle_bytes));
  auto bundle = Bundle::read(bytes);
  if (!bundle) return context(file.string(), std::move(bundle).error());
  return register_bundle(std::move(*bundle));
}

Result<std::shared_ptr<source::Ifunc>> Node::register_bundle(Bundle bundle) {
  auto ifunc = registry_.add(std::move(bundle));
  const auto& manifest = ifunc->bundle.manifest();
  constexpr uint8_t payload_entries =
      entry_payload_get_max_size | entry_payload_init | entry_payload_bound | entry_payload_init_2022;
  if ((manifest.entries & payload_entries) == 0 || ifunc->functions.keep_alive != nullptr) return ifunc;
  auto loaded = target::SourceCode::load(ifunc->bundle);
  if (!loaded) {
    registry_.remove(ifunc);
    return context(fmt::format("payload functions of '{}'", manifest.name), std::move(loaded).error());
  }
  const std::shared_ptr<target::SourceCode> code = std::move(*loaded);
  auto& functions = ifunc->functions;
  using Functions = source::PayloadFunctions;
  functions.max_size = reinterpret_cast<Functions::GetMaxSize>(
      code->symbol(manifest.has(entry_payload_bound) ? "payload_bound" : "payload_get_max_size"));
  void* const init = code->symbol("payload_init");
  if (manifest.has(entry_payload_init_2022))
    functions.init_2022 = reinterpret_cast<Functions::Init2022>(init);
  else
    functions.init_2021 = reinterpret_cast<Functions::Init2021>(init);
  functions.keep_alive = code;
  return ifunc;
}

Status Node::send(Link& link, const source::Message& message, bool with_code, Deadline deadline) {
  Outgoing call;
  call.bundle = &message.ifunc()->bundle;
  call.index = message.index();
  call.payload = {message.payload(), message.size()};
  call.with_code = with_code;
  return link.send_call(call, deadline);
}

Result<std::shared_ptr<Future>> Node::call(Link& link, const source::Message& message, uint32_t deadline_ms,
                                           Deadline room) {
  auto future = std::make_shared<Future>();
  future->link = &link;
  future->deadline_ns = deadline_ms != 0 ? now_ns() + uint64_t{deadline_ms} * 1'000'000 : 0;
  future->ifunc = message.ifunc();
  future->peer = link.shared_label();
  wire::CallTicket ticket;
  ticket.token = futures_.add(future);
  awaits_answers_ = true;
  ticket.deadline_ms = deadline_ms;
  ticket.hops_left = config_.hops;
  ticket.fanout_left = config_.fanout;
  Outgoing call;
  call.bundle = &message.ifunc()->bundle;
  call.index = message.index();
  call.payload = {message.payload(), message.size()};
  call.ticket = &ticket;
  if (auto sent = link.send_call(call, room); !sent) {
    futures_.forget(*future);
    return tc::fail(std::move(sent).error());
  }
  return future;
}

void Node::expose(std::string name, void* data, size_t size) {
  std::erase_if(exposed_, [&](const auto& exposed) { return exposed.name == name; });
  if (data != nullptr) exposed_.push_back({std::move(name), data, size});
}

Result<target::Code*> Node::load(Bundle bundle, std::string_view from, Bytes object) {
  const target::Executor::Pause pause(executor_);
  TC_ASSIGN(auto* const code, store_->load(std::move(bundle), from, std::move(object)));
  if (code->bundle->manifest().has(entry_library)) {
    log_->info("library '{}' ({}) from {} exports {}", code->name(), code->id().short_hex(),
               from.empty() ? "here" : from, fmt::join(code->bundle->manifest().exports, ", "));
    for (auto& link : links_) link->reconsider();
  }
  names_of_code_.insert_or_assign(code->name(), code->id());
  counters_.load_ns = code->load_ns;
  watch(*code);
  return code;
}

const Bundle* Node::bundle_of(const ContentId& id, const TargetTriple& triple) {
  const Bundle* const sent = sent_code_.find(id);
  if (sent != nullptr && sent->useful_for(triple) != 0) return sent;
  if (const Bundle* const useful = slices_.at_hand(id, triple)) return useful;
  if (sent != nullptr) return sent;
  if (const auto ifunc = registry_.find(id)) return &ifunc->bundle;
  const auto* const code = store_->find(id);
  return code != nullptr ? code->bundle.get() : nullptr;
}

std::shared_ptr<const Bytes> Node::code_section(const Bundle& bundle, const TargetTriple& triple) {
  if (const auto which = bundle.useful_for(triple)) return sent_code_.section(bundle, which);
  const auto* const other = bundle_of(bundle.id(), triple);
  return other != nullptr ? sent_code_.section(*other, other->useful_for(triple)) : sent_code_.section(bundle, 0);
}

std::string Node::no_memory_for_messages(size_t bytes) {
  auto& budget = buffers_->budget();
  return fmt::format("{} bytes of messages wait at {}, {} more are wanted, and {} is the limit (message-memory)",
                     budget.used(), label_, bytes, budget.limit());
}

// A node that only sends has no watchdog.
void Node::watch(const target::Code& code) {
  if (config_.execution_limit_ms == 0) return;
  if (!watchdog_) {
    const auto report = [this](const std::string& ifunc, uint64_t running_ms) {
      log_->error(
          "{}: ifunc '{}' has been running for {} ms when execution-limit is {} ms; code inside this process cannot be "
          "stopped, "
          "and nothing else runs here until it returns",
          label_, ifunc, running_ms, config_.execution_limit_ms);
      stuck_.fetch_add(1, std::memory_order_relaxed);
    };
    try {
      watchdog_ = std::make_unique<Watchdog>(executor_, config_.execution_limit_ms, report);
    } catch (const std::system_error& error) {
      log_->warn("{}: execution-limit is not watched: no thread can be had: {}", label_, error.what());
      config_.execution_limit_ms = 0;
      return;
    }
  }
  watchdog_->know(code);
}

void Node::forget_code(const target::Code& code) {
  if (watchdog_) watchdog_->forget(code);
  slices_.forget(code.id());
  companions_.erase(code.id());
  if (const auto known = names_of_code_.find(code.name()); known != names_of_code_.end() && known->second == code.id())
    names_of_code_.erase(known);
}

void Node::count_failure(const Error& why) {
  ++counters_.failures;
  log_->info("a call failed here: {}", why.message);
}

void Node::answer_at_end(target::Call& call) {
  wire::Reply reply;
  reply.token = call.ticket.token;
  reply.node_id = wire_id();
  const auto* route = call.has_route ? &call.route.route() : nullptr;
  if (call.failed) {
    reply.status = TC_ERR_IFUNC;
    reply.code = call.fail_code;
    reply.message = fmt::format("{}: ifunc '{}' failed with code {}: {}", label(), call.code->name(), call.fail_code,
                                call.fail_message);
    ++counters_.failures;
    if (call.answered) reply.token = 0;  // too late for an answer; the failure is reported all the same
  }
  answer(static_cast<Link*>(call.link), route, reply);
}

void Node::answer(Link* link, const wire::Route* route, const wire::Reply& reply) {
  if (route != nullptr && route->instance != instance_) {
    link = link_to_instance(route->instance);
    if (link == nullptr && !route->address.empty()) {
      link = link_to_address(route->address);
      // One that has not greeted yet will do. Another instance at that address means that who asked has gone; to
      // connect again and again would change nothing.
      if (link == nullptr) {
        if (auto reached = reach(route->address)) link = *reached;
      } else if (link->state() == Link::State::ready) {
        link = nullptr;
      }
    }
    if (link == nullptr) {
      log_->warn("an answer is lost: node {} ({}) cannot be reached", route->node_id, route->address);
      return;
    }
  } else if (route != nullptr) {
    link = nullptr;
  }
  if (link != nullptr)
    link->post_reply(reply);
  else if (reply.token != 0)
    complete(reply);
  else
    log_->info("a call of this node's own failed: {}", reply.message);
}

void Node::answer_for(uint64_t token, const wire::Route* route, const Error& error) {
  if (token == 0) return;
  owed_.push_back({route != nullptr ? std::optional(*route) : std::nullopt, token, error});
  note_backlog();
}

void Node::answer_owed() {
  while (!owed_.empty()) {
    const auto owed = std::move(owed_.front());
    owed_.pop_front();
    wire::Reply reply;
    reply.token = owed.token;
    reply.status = owed.error.code;
    reply.node_id = wire_id();
    reply.message = fmt::format("{}: {}", label(), owed.error.message);
    answer(nullptr, owed.route ? &*owed.route : nullptr, reply);
  }
}

void Node::each_call_held(const std::function<void(uint64_t asker, uint64_t token)>& show) const {
  for (const auto& link : links_) link->each_call_parked(show);
  for (const auto* const calls : {&local_calls_, &uncompiled_calls_})
    for (const auto& local : *calls)
      if (local.ticket.token != 0) show(local.route ? local.route->route().instance : instance_, local.ticket.token);
  for (const auto& owed : owed_) show(owed.route ? owed.route->instance : instance_, owed.token);
}

void Node::on_compiled() {
  for (auto& local : std::exchange(uncompiled_calls_, {})) local_calls_.push_back(std::move(local));
}

void Node::answer_compiled() {
  for (const auto& done : compile_service_->take()) {
    if (done.object) ++counters_.compiled_for_others;
    if (auto* const link = link_marked(done.link)) link->answer_compile(done.token, done.object);
  }
}

void Node::complete(const wire::Reply& reply, Buffer memory) {
  if (futures_.complete(reply, std::move(memory))) return;
  ++counters_.late_answers;
  log_->debug("an answer to call {} came when nobody waited for it any more", reply.token);
}

}  // namespace tc::node
