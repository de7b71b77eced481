// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a link: what frames from the peer mean. Plain calls of held code never come here; they
// are the receiver's (target/receiver.cc).
//
// Whatever a frame says is copied before it is checked: its memory may be the peer's to change.
#include <spdlog/logger.h>

#include <algorithm>

#include "node/link/link.h"
#include "node/node.h"

namespace tc::node {

namespace {

// Frames taken off one link before the others get their turn and the peer gets its memory back.
constexpr size_t frames_a_turn = 1024;
// Bounds what a peer can make us keep while its code is on its way.
constexpr size_t parked_limit = 64u * 1024 * 1024;
// Reasons kept for refused code, lest a peer fill our memory with them; code whose reason went is asked for again.
constexpr size_t unusable_limit = 1024;
// Memory for a call with code that a link keeps for the next one.
constexpr size_t kept_copy_limit = 64 * 1024;

Bytes private_copy(ByteView body) { return {body.begin(), body.end()}; }

const target::NumberTable& no_numbers() {
  static const target::NumberTable empty;
  return empty;
}

}  // namespace

size_t Link::receive() {
  auto& executor = node_.executor();
  executor.running().link = this;
  if (std::exchange(compiled_, false)) {
    waits_for_compiler_ = false;
    if (!resume_parked()) return 1;
  }
  // While calls wait for code, no later call may overtake them: with an empty table all come to on_frame().
  const auto& numbers = parked_.empty() && trusted_ ? numbers_ : no_numbers();
  const auto taken = target::receive(*in_, numbers, executor, *this, frames_a_turn);
  if (taken == frames_a_turn || (ending_ && taken != 0)) {
    node_.come_back_to(*this);
  } else if (ending_ && state_ == State::ready) [[unlikely]] {
    connection_->drop();
    lose(*ending_);
  }
  return taken;
}

bool Link::on_frame(const wire::Header& header, std::byte* body) {
  const ByteView view(body, header.length);
  switch (header.kind) {
    case wire::Kind::call: return on_call(header, body);
    case wire::Kind::call_code: return on_call_code(header, view);
    case wire::Kind::code: return on_code(header, view);
    case wire::Kind::need: return on_need(header, view);
    case wire::Kind::reply: return on_reply(view);
    case wire::Kind::barrier: return on_barrier(header, view);
    case wire::Kind::fragment: return on_fragment(header.number, view);
    case wire::Kind::known:
      if (codes_.id_of(header.number) != nullptr) return true;  // it has what it was sent: nothing to do
      return on_broken(fmt::format("it claims to know code number {}, which was never sent", header.number)), false;
    case wire::Kind::notice: return on_notice(header.number, view);
    case wire::Kind::compile: return on_compile(header.number, view);
    case wire::Kind::bye: return on_bye(view);
    case wire::Kind::none:
    case wire::Kind::pad: break;
  }
  return on_broken(fmt::format("a frame of kind {} has no place among calls", static_cast<int>(header.kind))), false;
}

// ---- Calls

bool Link::check_call(const wire::Header& header) {
  if (!wire::are_call_flags(header.flags))
    return on_broken(fmt::format("a call has flags {} when 0, 1 and 3 are known", header.flags)), false;
  if (header.number < target::NumberTable::limit) return true;
  return on_broken(
             fmt::format("a call has number {} when numbers end at {}", header.number, target::NumberTable::limit - 1)),
         false;
}

bool Link::on_call(const wire::Header& header, std::byte* body) {
  const ByteView view(body, header.length);
  if (!check_call(header)) return false;
  if (!trusted_) return refuse(header, view, node_.not_trusted(connection_->origin())), true;
  note_for_snapshots(header, view);
  if (!parked_.empty()) return park(header, view);
  if (auto* const code = numbers_.find(header.number); code != nullptr)
    return run(*code, header.flags, body, header.length);
  if (const auto bad = unusable_.find(header.number); bad != unusable_.end())
    return refuse(header, view, bad->second), true;
  ask_for(header.number);
  return park(header, view);
}

void Link::refuse(const wire::Header& header, ByteView body, const Error& why) {
  const auto copy = private_copy(body.first(std::min<size_t>(body.size(), 1024)));
  uint64_t token = 0;
  std::optional<wire::Route> route;
  if ((header.flags & wire::flag_token) != 0 && copy.size() >= wire::ticket_bytes) {
    token = wire::read_ticket(copy.data()).token;
    size_t ignored = 0;
    // Whom we do not trust shall not make us connect to anywhere.
    if ((header.flags & wire::flag_route) != 0 && trusted_)
      if (auto decoded = wire::decode_route(ByteView(copy).subspan(wire::ticket_bytes), ignored))
        route = std::move(*decoded);
  }
  node_.count_failure(why);
  wire::Reply reply;
  reply.token = token;
  reply.status = why.code;
  reply.node_id = node_.wire_id();
  reply.message = fmt::format("{}: {}", node_.label(), why.message);
  node_.answer(this, route ? &*route : nullptr, reply);
}

// ---- Code

LoadResult Link::learn(uint32_t number, const wire::CodeBody& code) {
  auto& store = node_.store();
  auto* held = store.find(code.head.id);
  if (held == nullptr || (code.head.carried & ~held->bundle->carried()) != 0) {
    if (code.bundle.empty())
      return LoadResult::failed(
          {TC_ERR_NOT_FOUND, fmt::format("{} no longer holds the code {} that it called: register it there again",
                                         peer_label(), code.head.id.short_hex())});
    auto bundle = Bundle::read_carried(code.bundle, code.head.carried, code.head.id);
    if (!bundle) return LoadResult::failed(std::move(bundle).error());
    auto loaded = node_.code_loader().load(std::move(*bundle), peer_host(), mark_);
    if (!loaded.is_loaded()) return loaded;
    held = loaded.code;
    node_.slices().note_supplier(code.head.id, *this);
  }
  if (number >= meanings_.size()) meanings_.resize(std::max<size_t>(number + 1, meanings_.size() * 2));
  meanings_[number] = meaning_of(code.head.id);
  const bool is_news = numbers_.find(number) != held;
  if (auto bound = numbers_.bind(number, *held); !bound) return LoadResult::failed(std::move(bound).error());
  unusable_.erase(number);
  if (is_news)
    if (auto told = post(wire::Kind::known, number, {}); !told) return LoadResult::failed(std::move(told).error());
  return LoadResult::loaded(*held);
}

bool Link::on_call_code(const wire::Header& header, ByteView body) {
  const auto started = now_ns();
  if (!check_call(header)) return false;
  if (!trusted_) return refuse(header, body, node_.not_trusted(connection_->origin())), true;
  note_for_snapshots(header, body);
  if (!parked_.empty()) return park(header, body);
  Bytes copy = std::exchange(code_copy_, {});
  copy.assign(body.begin(), body.end());
  // Ticket and route stand in front of the code; their sizes are needed to find it.
  size_t skip = (header.flags & wire::flag_token) != 0 ? wire::ticket_bytes : 0;
  if (skip > copy.size()) return on_broken(fmt::format("a call with a token is only {} bytes", copy.size())), false;
  if ((header.flags & wire::flag_route) != 0) {
    size_t route_size = 0;
    if (const auto route = wire::decode_route(ByteView(copy).subspan(skip), route_size); !route)
      return on_broken(route.error().message), false;
    skip += route_size;
  }
  const auto code = wire::decode_code(ByteView(copy).subspan(skip));
  if (!code) return on_broken(code.error().message), false;
  if (!means(header.number, code->head.id)) return false;
  const bool never_seen = node_.store().find(code->head.id) == nullptr;
  const auto learned = learn(header.number, *code);
  if (learned.is_error()) {
    if (!learned.transient) note_unusable(header.number, learned.error);
    return refuse(header, body, learned.error), true;
  }
  if (learned.is_pending()) return park_for_compiler(header, body);
  // The payload moves up to the ticket, over the code: a call like any other from here.
  const auto payload = code->payload;
  std::byte* const to = copy.data() + skip;
  if (!payload.empty()) std::memmove(to, payload.data(), payload.size());
  const bool fine = run(*learned.code, header.flags, copy.data(), skip + payload.size());
  if (never_seen) node_.note_first_execution(now_ns() - started);
  if (copy.capacity() <= kept_copy_limit) code_copy_ = std::move(copy);  // fresh memory costs as much as its page fault
  return fine;
}

// A number stands for one code as long as the link lives: the peer's calls by that number were made for it.
bool Link::means(uint32_t number, const ContentId& id) {
  if (number >= meanings_.size() || meanings_[number] == 0 || meanings_[number] == meaning_of(id)) return true;
  return on_broken(fmt::format("code number {} is {} now when it was other code before", number, id.short_hex())),
         false;
}

void Link::note_unusable(uint32_t number, const Error& why) {
  if (unusable_.size() >= unusable_limit) unusable_.clear();
  unusable_.insert_or_assign(number, why);
}

bool Link::on_code(const wire::Header& header, ByteView body) {
  const auto copy = private_copy(body);
  const auto code = wire::decode_code(copy);
  if (!code) return on_broken(code.error().message), false;
  if ((header.flags & wire::flag_for_another) != 0) return on_slices_sent(header.number, *code);
  if (awaited_ != header.number)
    return on_broken(fmt::format("it sends code number {} that nobody asked for", header.number)), false;
  if (!means(header.number, code->head.id)) return false;
  awaited_.reset();
  const auto learned = learn(header.number, *code);
  if (learned.is_pending()) return park_for_compiler(header, copy);
  if (learned.is_error()) note_unusable(header.number, learned.error);
  const bool fine = resume_parked();
  if (learned.is_error() && learned.transient) unusable_.erase(header.number);
  return fine;
}

// In front of everything that is parked: a call with its code, or the code that parked calls had asked for.
bool Link::park_for_compiler(const wire::Header& header, ByteView body) {
  Charge charge;
  // Code that was asked for is taken in any case: calls wait for it.
  if (!charge.take(node_.buffers().budget(), body.size() + sizeof(Parked)) && header.kind != wire::Kind::code)
    return refuse(header, body, Error{TC_ERR_LIMIT, node_.no_memory_for_messages(body.size())}), true;
  waits_for_compiler_ = true;
  parked_bytes_ += body.size() + sizeof(Parked);
  parked_.push_front({header, private_copy(body), now_ns(), std::move(charge)});
  return true;
}

bool Link::on_need(const wire::Header& header, ByteView body) {
  const auto number = header.number;
  const auto need = wire::decode_need(private_copy(body));
  if (!need) return on_broken(need.error().message), false;
  if ((header.flags & wire::flag_for_another) != 0) return on_slices_needed(number, *need);
  const auto* const id = codes_.id_of(number);
  if (id == nullptr) return on_broken(fmt::format("it asks for code number {}, which was never sent", number)), false;
  const auto* const bundle = node_.bundle_of(*id, peer_triple_);
  if (bundle == nullptr) return deny_code(number, *id), true;
  node_.log().info("{} asks for the code of ifunc '{}' again", peer_label(), bundle->manifest().name);
  const auto code = node_.code_section(*bundle, peer_triple_);
  node_.count_code_sent(code->size());
  if (const auto sent = post(wire::Kind::code, number, *code); !sent) hang_up(sent.error());
  return true;
}

// It was sent once, and is neither registered nor kept any more. The peer fails the calls that wait for it.
void Link::deny_code(uint32_t number, const ContentId& id) {
  node_.log().warn("{} asks for the code {} again, which is not registered here any more: register it again",
                   peer_label(), id.short_hex());
  withdraw(number);
  Bytes none;
  wire::append_code(none, {id, 0, 0}, {});
  if (const auto sent = post(wire::Kind::code, number, none); !sent) hang_up(sent.error());
}

void Link::ask_for(uint32_t number) {
  node_.count_need();
  awaited_ = number;
  if (const auto sent = post(wire::Kind::need, number, wire::encode_need({{}, node_.config().code.triple.text})); !sent)
    hang_up(sent.error());
}

bool Link::park(const wire::Header& header, ByteView body) {
  const auto bytes = body.size() + sizeof(Parked);
  if (parked_bytes_ + bytes > parked_limit) {
    if (header.kind == wire::Kind::barrier) return on_broken("its barriers fill what may wait for code"), false;
    refuse(header, body,
           Error{TC_ERR_LIMIT,
                 fmt::format("{} bytes of calls wait for code, and at most {} may", parked_bytes_, parked_limit)});
    return true;
  }
  Charge charge;
  if (!charge.take(node_.buffers().budget(), bytes)) {
    if (header.kind == wire::Kind::barrier) return on_broken("its barriers fill what may wait for code"), false;
    refuse(header, body, Error{TC_ERR_LIMIT, node_.no_memory_for_messages(bytes)});
    return true;
  }
  parked_bytes_ += bytes;
  parked_.push_back({header, private_copy(body), now_ns(), std::move(charge)});
  return true;
}

bool Link::is_late(const wire::Header& header, ByteView body, uint64_t since_ns) const noexcept {
  if (header.kind == wire::Kind::barrier || (header.flags & wire::flag_token) == 0 || body.size() < wire::ticket_bytes)
    return false;
  const auto deadline_ms = wire::read_ticket(body.data()).deadline_ms;
  return deadline_ms != 0 && now_ns() - since_ns > uint64_t{deadline_ms} * 1'000'000;
}

// Runs what waited, in order, until something waits again.
bool Link::resume_parked() {
  auto waiting = std::exchange(parked_, {});
  parked_bytes_ = 0;
  while (!waiting.empty()) {
    auto [header, body, since_ns, charge] = std::move(waiting.front());
    waiting.pop_front();
    if (header.kind == wire::Kind::code) {  // it was compiled
      awaited_ = header.number;
      for (const auto& frame : waiting) parked_bytes_ += frame.body.size() + sizeof(Parked);
      parked_ = std::move(waiting);
      return on_code(header, body);
    }
    if (is_late(header, body, since_ns)) {
      refuse(header, body, Error{TC_ERR_TIMEOUT, "the call waited for its code past its deadline and was not run"});
      continue;  // code that it brought along will be asked for when a later call needs it
    }
    if (!on_frame(header, body.data())) return false;
    if (parked_.empty()) continue;
    // It waits for other code now, and so does all that stands behind it.
    parked_.front().since_ns = since_ns;
    parked_bytes_ = 0;
    for (auto& frame : waiting) parked_.push_back(std::move(frame));
    for (const auto& frame : parked_) parked_bytes_ += frame.body.size() + sizeof(Parked);
    break;
  }
  return true;
}

// ---- Everything else

void Link::note_failure(const wire::Reply& reply) {
  if (first_failure_)
    ++more_failures_;
  else
    first_failure_ = Error{reply.status, reply.message};
  node_.log().info("a call failed: {}", reply.message);
}

bool Link::on_reply(ByteView body) {
  const auto copy = private_copy(body);
  const auto reply = wire::decode_reply(copy);
  if (!reply) return on_broken(reply.error().message), false;
  if (reply->token == 0)
    note_failure(*reply);
  else
    node_.complete(*reply);
  return true;
}

// Its bytes stay where they were put together: the future gets that memory.
bool Link::on_large_reply(Assembly::Whole whole) {
  const auto reply = wire::decode_reply({whole.body, whole.header.length});
  if (!reply) return on_broken(reply.error().message), false;
  node_.complete(*reply, std::move(whole.memory));
  return true;
}

bool Link::on_barrier(const wire::Header& header, ByteView body) {
  const auto number = wire::decode_barrier(private_copy(body));
  if (!number) return on_broken(number.error().message), false;
  if (header.number == wire::barrier_ask) {
    if (!parked_.empty()) return park(header, body);
    if (const auto sent = post(wire::Kind::barrier, wire::barrier_answer, wire::encode_barrier(*number)); !sent)
      hang_up(sent.error());
    return true;
  }
  if (header.number != wire::barrier_answer || *number > barriers_sent_ || *number <= barriers_passed_)
    return on_broken(fmt::format("a barrier frame of type {} answers barrier {} when {} were sent and {} answered",
                                 header.number, *number, barriers_sent_, barriers_passed_)),
           false;
  barriers_passed_ = *number;
  return true;
}

// ---- Snapshots (snapshot.h)

void Link::show_call(const wire::Header& header, ByteView body,
                     const std::function<void(uint64_t asker, uint64_t token)>& show) const {
  const bool is_call = header.kind == wire::Kind::call || header.kind == wire::Kind::call_code;
  if (!is_call || (header.flags & wire::flag_token) == 0 || body.size() < wire::ticket_bytes) return;
  const auto copy = private_copy(body.first(std::min<size_t>(body.size(), wire::ticket_bytes + 512)));
  const auto token = wire::read_ticket(copy.data()).token;
  if ((header.flags & wire::flag_route) == 0) return show(peer_.instance, token);
  size_t ignored = 0;
  if (const auto route = wire::decode_route(ByteView(copy).subspan(wire::ticket_bytes), ignored))
    show(route->instance, token);
}

void Link::each_call_parked(const std::function<void(uint64_t asker, uint64_t token)>& show) const {
  for (const auto& parked : parked_) show_call(parked.header, parked.body, show);
  for (const auto& held : held_)
    if (held.ticket && held.ticket->token != 0)
      show(held.route ? held.route->route().instance : node_.instance(), held.ticket->token);
}

void Link::note_for_snapshots(const wire::Header& header, ByteView body) {
  auto& snapshots = node_.deaths().snapshots();
  if (!snapshots.recording()) [[likely]]
    return;
  show_call(header, body, [&](uint64_t asker, uint64_t token) { snapshots.note(*this, asker, token); });
}

bool Link::on_notice(uint32_t what, ByteView body) {
  if (!trusted_) return true;  // what strangers say about others is hearsay
  const auto copy = private_copy(body);
  const auto heed = [&](auto&& notice, auto&& what_to_do) {
    if (!notice) return on_broken(notice.error().message), false;
    what_to_do(*notice);
    return true;
  };
  auto& deaths = node_.deaths();
  if (what == wire::notice_gone)
    return heed(wire::decode_gone(copy), [&](const wire::Gone& gone) { deaths.on_gone(*this, gone); });
  if (what == wire::notice_marker)
    return heed(wire::decode_marker(copy),
                [&](const wire::Marker& marker) { deaths.snapshots().on_marker(*this, marker); });
  if (what == wire::notice_report)
    return heed(wire::decode_report(copy),
                [&](const wire::Report& report) { deaths.snapshots().on_report(*this, report); });
  return on_broken(fmt::format("a notice is of type {} when 0 to 2 are known", what)), false;
}

void Link::on_broken(std::string what) {
  node_.executor().reset();
  hang_up(Error{TC_ERR_MALFORMED, fmt::format("{} breaks the protocol: {}", peer_label(), what)});
}

}  // namespace tc::node
