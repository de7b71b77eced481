// SPDX-License-Identifier: Apache-2.0
#include "node/link/call_receiver.h"

#include <algorithm>

#include "base/clock.h"
#include "node/authority.h"
#include "node/link/link.h"
#include "node/workers/call_places.h"
#include "trust/code_signature.h"

namespace tc::node {

namespace {

// What stands in front of a call's payload. Of a frame that is not run, it says which node made the call.
struct CallFront {
  std::optional<wire::CallHeader> header;             // none: nobody waits for an answer, or the frame is no whole call
  std::optional<wire::ReturnAddress> return_address;  // none: the peer that sent the frame is the caller
};

// `body` may be memory that its sender still writes to.
CallFront read_call_front(const wire::FrameHeader& frame, ByteView body) {
  const bool is_call = frame.kind == wire::Kind::call || frame.kind == wire::Kind::call_code;
  if (!is_call || (frame.flags & wire::flag_call_header) == 0 || body.size() < wire::call_header_bytes) return {};
  const auto front = body.first(std::min(body.size(), wire::call_header_bytes + wire::max_return_address_bytes));
  const Bytes copy = wire::private_copy(front);
  CallFront found;
  found.header = wire::read_call_header(copy.data());
  if ((frame.flags & wire::flag_return_address) == 0) return found;
  size_t size = 0;
  if (auto address = wire::decode_return_address(ByteView(copy).subspan(wire::call_header_bytes), size))
    found.return_address = std::move(*address);
  else
    found.header.reset();
  return found;
}

// Bounds what a peer can make us keep while its code is on its way ...
constexpr size_t waiting_limit = 64u * 1024 * 1024;
// ... and while it is behind with reading. Flow control acts from half of that on, so that only a peer that reads nothing
// gets there.
constexpr size_t held_limit = 2 * waiting_limit;
// Barriers may not be refused. A peer in good order has a few on their way.
constexpr size_t barriers_limit = 64 * 1024;
// Reasons kept for refused code, limited so that a peer cannot fill our memory. Code whose reason was dropped is requested again.
constexpr size_t unusable_limit = 1024;
// Calls that a peer took back and that have not had their turn. One more is run as if it had not been taken back.
constexpr size_t canceled_limit = 4096;
// Memory for a call with code that a link keeps for the next one.
constexpr size_t kept_copy_limit = 64 * 1024;

// For as long as a call runs.
template <class Call>
class [[nodiscard]] Running {
 public:
  Running(const Call*& running, const Call* call) noexcept : running_(running) { running_ = call; }
  ~Running() { running_ = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const Call*& running_;
};

// The call waited past its deadline.
bool is_late(const wire::FrameHeader& header, ByteView body, uint64_t since_ns) {
  const auto call = read_call_front(header, body).header;
  return call && call->deadline_ms != 0 && now_ns() - since_ns > uint64_t{call->deadline_ms} * 1'000'000;
}

}  // namespace

CallReceiver::CallReceiver(Link& link, Channel& channel, const LinkServices& services)
    : link_(link),
      channel_(channel),
      executor_(services.executor),
      places_(services.places),
      code_(services.code),
      answers_(services.answers),
      authority_(services.authority),
      common_(services.channel.common),
      longest_call_(common_.config.max_message),
      first_soft_limit_(std::min(waiting_limit, common_.config.message_memory / 4)),
      soft_limit_(first_soft_limit_) {}

const target::NumberTable& CallReceiver::no_numbers() noexcept {
  static const target::NumberTable none;
  return none;
}

bool CallReceiver::broken(const std::string& what) {
  executor_.reset();
  return channel_.disconnect_for(what);
}

// ---- Calls

bool CallReceiver::check(const wire::FrameHeader& header) {
  if (!wire::are_call_flags(header.flags))
    return broken(fmt::format("a call has flags {} when 0, 1 and 3 are known", header.flags));
  if (header.length > longest_call())
    return broken(
        fmt::format("a call is {} bytes when at most {} are taken (max-message)", header.length, longest_call()));
  if (header.number < target::NumberTable::limit) return true;
  return broken(
      fmt::format("a call has number {} when numbers end at {}", header.number, target::NumberTable::limit - 1));
}

bool CallReceiver::on_call(const wire::FrameHeader& header, std::byte* body) {
  const ByteView view(body, header.length);
  if (!check(header)) return false;
  if (turns_away()) [[unlikely]]
    return turn_away(header, view);
  if (has_canceled() || resumed_since_ns_) [[unlikely]]
    if (const auto why = why_not_run(header, view)) return refuse(header, view, *why), true;
  if (must_wait()) return queue(header, view);
  if (auto* const code = numbers_.find(header.number); code != nullptr) return run(header, *code, nullptr, body);
  if (const auto* const one = on_behalf(header.number); one != nullptr) return run(header, *one->code, one, body);
  if (const auto* const why = why_unusable(header.number); why != nullptr) return refuse(header, view, *why), true;
  const auto others = waiting_.size();
  if (!queue(header, view)) return false;
  if (waiting_.size() != others) ask_for(header.number);  // else it may not wait and was refused: nobody needs its code
  return true;
}

bool CallReceiver::run(const wire::FrameHeader& header, target::Code& code, const OnBehalf* on_behalf,
                       std::byte* body) {
  using Place = CallPlaces::Place;
  const auto wish = places_.wish_of(code, on_behalf != nullptr ? on_behalf->rights : rights_of(&code));
  const auto place = places_.place(code, wish, &link_);
  if (place == Place::later) [[unlikely]]
    return queue_for_worker(header, {body, header.length}, &wish);
  const Running running(running_, on_behalf);
  auto& call = executor_.running();
  size_t skip = 0;
  if ((header.flags & wire::flag_call_header) != 0) {
    if (header.length < wire::call_header_bytes) [[unlikely]]
      return broken(fmt::format("a call with a token is {} bytes when the token alone takes {}", header.length,
                                wire::call_header_bytes));
    call.header = wire::read_call_header(body);
    call.has_header = true;
    call.wants_reply = call.header.token != 0;
    skip = wire::call_header_bytes;
  }
  if ((header.flags & wire::flag_return_address) != 0) {
    const auto taken = call.return_address.take({body + skip, header.length - skip});
    if (!taken) return broken(taken.error().message);
    skip += *taken;
    call.return_address.set_origin(channel_.id(), is_believed_);
    call.has_return_address = true;
    call.chain = rights_of(&code)->chain;
  }
  call.has_effects = header.flags != 0;
  std::byte* payload = body + skip;
  const auto size = header.length - skip;
  if (place != Place::here) [[unlikely]] {
    const auto handed = hand_over(code, {payload, size}, wish.in_cell);
    if (handed) return true;
    if (wish.in_cell) return executor_.reset(), refuse(header, {body, header.length}, handed.error()), true;
  }
  if (reinterpret_cast<uintptr_t>(payload) % (size_t{1} << code.alignment_log2) != 0) [[unlikely]]
    payload = aligned_copy(scratch_, {payload, size}, size_t{1} << code.alignment_log2);
  if (!executor_.run(code, payload, size)) answers_.end_running_call(executor_);
  return true;
}

// An error: there is no memory for its payload. Then it runs here, unless it may not.
Status CallReceiver::hand_over(target::Code& code, ByteView payload, bool in_cell) {
  auto handed = std::make_unique<HandedCall>();
  TC_CHECK(channel_.charge(handed->charge, payload.size() + sizeof(HandedCall)));
  executor_.prepare(code);
  handed->code = &code;
  handed->call = executor_.running();
  handed->rights = rights_of(&code);
  handed->since_ns = resumed_since_ns_.value_or(now_ns());
  handed->size = payload.size();
  handed->payload = aligned_copy(handed->memory, payload, size_t{1} << code.alignment_log2);
  handed->hold.emplace(link_);
  executor_.reset();
  places_.hand_over(std::move(handed), in_cell ? CallPlaces::Place::in_cell : CallPlaces::Place::elsewhere);
  return {};
}

void CallReceiver::refuse(const wire::FrameHeader& header, ByteView body, const Error& why) {
  answers_.count_failure(why, numbers_.find(header.number));
  answer_refused(header, body, why.code, fmt::format("{}: {}", common_.self.label, why.message));
}

// A node that drains counts no failure: nothing is wrong, and the caller goes elsewhere.
void CallReceiver::refuse_as_draining(const wire::FrameHeader& header, ByteView body) {
  answer_refused(header, body, TC_ERR_CLOSED,
                 fmt::format("{} is draining: it ends, and takes no more calls", common_.self.label));
}

bool CallReceiver::turn_away(const wire::FrameHeader& header, ByteView body) {
  if (!may_run_) return refuse(header, body, why_not_), true;
  if (channel_.is_behind()) return queue(header, body);
  return refuse_as_draining(header, body), true;
}

void CallReceiver::answer_refused(const wire::FrameHeader& header, ByteView body, tc_status_t status,
                                  std::string message) {
  const auto call = read_call_front(header, body);
  wire::Reply reply;
  reply.token = call.header ? call.header->token : 0;
  reply.status = status;
  reply.node_id = common_.self.wire_id();
  reply.message = std::move(message);
  if (!call.return_address) return answers_.send(&link_, nullptr, reply);
  // A refused call makes us connect to nobody.
  if (!answers_.send_if_connected(*call.return_address, reply)) link_.post_reply_for(*call.return_address, reply);
}

bool CallReceiver::on_barrier(const wire::FrameHeader& header, ByteView body) {
  if (has_waiting() && !resumed_since_ns_) return queue(header, body);
  if (handed_over_ != 0) return queue_for_worker(header, body, nullptr);
  const auto number = wire::decode_barrier(wire::private_copy(body));
  if (!number) return broken(number.error().message);
  link_.report_untold_failures();
  channel_.post_or_disconnect(wire::Kind::barrier, 0, wire::barrier_answer, wire::encode_barrier(*number));
  return true;
}

// ---- Code

bool CallReceiver::on_call_code(const wire::FrameHeader& header, ByteView body) {
  const auto started = now_ns();
  if (!check(header)) return false;
  if (turns_away()) return turn_away(header, body);
  if (must_wait()) return queue(header, body);
  Bytes copy = std::exchange(code_copy_, {});
  copy.assign(body.begin(), body.end());
  // The call header and the return address stand in front of the code; their sizes are needed to find it.
  size_t skip = (header.flags & wire::flag_call_header) != 0 ? wire::call_header_bytes : 0;
  if (skip > copy.size()) return broken(fmt::format("a call with a token is only {} bytes", copy.size()));
  if ((header.flags & wire::flag_return_address) != 0) {
    size_t size = 0;
    if (const auto address = wire::decode_return_address(ByteView(copy).subspan(skip), size); !address)
      return broken(address.error().message);
    skip += size;
  }
  const auto code = wire::decode_code(ByteView(copy).subspan(skip));
  if (!code) return broken(code.error().message);
  if (!keeps_its_code(header.number, code->head)) return false;
  const bool never_seen = code_.codes.find(code->head.id) == nullptr;
  const auto learned = learn(header.number, *code);
  if (learned.is_error()) {
    if (!learned.transient) set_unusable(header.number, learned.error);
    return refuse(header, body, learned.error), true;
  }
  if (learned.is_pending()) return queue_for_compiler(header, body);
  // Only now: later calls need the code, and the peer may be gone when it is asked for it again.
  if (const auto why = why_not_run(header, body)) return refuse(header, body, *why), true;
  // The payload moves up to the call header, over the code: a call like any other from here.
  const auto payload = code->payload;
  std::byte* const to = copy.data() + skip;
  if (!payload.empty()) std::memmove(to, payload.data(), payload.size());
  const wire::FrameHeader as_call{wire::Kind::call, header.flags, header.number,
                                  static_cast<uint32_t>(skip + payload.size())};
  const bool fine = run(as_call, *learned.code, on_behalf(header.number), copy.data());
  if (never_seen) common_.counters.first_execution_ns = now_ns() - started;
  if (copy.capacity() <= kept_copy_limit) code_copy_ = std::move(copy);  // fresh memory costs as much as its page fault
  return fine;
}

bool CallReceiver::on_code(const wire::FrameHeader& header, const wire::CodeBody& code, ByteView body) {
  if (awaited_ != header.number)
    return broken(fmt::format("it sends code number {} that nobody asked for", header.number));
  if (!keeps_its_code(header.number, code.head)) return false;
  awaited_.reset();
  const auto learned = learn(header.number, code);
  if (learned.is_pending()) return queue_for_compiler(header, body);
  if (learned.is_error()) set_unusable(header.number, learned.error);
  const bool fine = resume();
  if (learned.is_error() && learned.transient) unusable_.erase(header.number);
  return fine;
}

bool CallReceiver::keeps_its_code(uint32_t number, const wire::CodeHead& code) {
  if (number < id_prefixes_.size() && id_prefixes_[number] != 0 && id_prefixes_[number] != id_prefix_of(code.id))
    return broken(fmt::format("code number {} is {} now when it was other code before", number, code.id.short_hex()));
  const auto* const before = on_behalf(number);
  if (before != nullptr ? before->chain == code.chain : code.chain.empty() || numbers_.find(number) == nullptr)
    return true;
  return broken(fmt::format("code number {} is called on behalf of {} others now when it was of {} before", number,
                            code.chain.keys().size(), before != nullptr ? before->chain.keys().size() : 0));
}

std::optional<uint32_t> CallReceiver::number_of(const ContentId& id) const noexcept {
  const auto found = std::ranges::find(id_prefixes_, id_prefix_of(id));
  if (found == id_prefixes_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - id_prefixes_.begin());
}

const Error* CallReceiver::why_unusable(uint32_t number) {
  if (unusable_since_ != code_.codes.libraries_loaded()) unusable_.clear();
  const auto found = unusable_.find(number);
  return found != unusable_.end() ? &found->second : nullptr;
}

void CallReceiver::set_unusable(uint32_t number, const Error& why) {
  if (unusable_.size() >= unusable_limit || unusable_since_ != code_.codes.libraries_loaded()) unusable_.clear();
  unusable_since_ = code_.codes.libraries_loaded();
  unusable_.insert_or_assign(number, why);
}

void CallReceiver::ask_for(uint32_t number) {
  ++common_.counters.needs;
  awaited_ = number;
  channel_.post_or_disconnect(wire::Kind::need, 0, number, wire::encode_need({{}, common_.config.code.triple.text}));
}

// ---- Calls that wait

// A frame that waited before goes in front of the others again.
bool CallReceiver::queue(const wire::FrameHeader& header, ByteView body) {
  Waiting waiting{header, {}, resumed_since_ns_ ? *resumed_since_ns_ : now_ns(), {}};
  const auto bytes = body.size() + sizeof(Waiting);
  const bool is_barrier = header.kind == wire::Kind::barrier;
  waiting.is_refused = turns_away() && !is_barrier;
  const auto most =
      (channel_.is_behind() || awaits_worker_ ? held_limit : waiting_limit) + (is_barrier ? barriers_limit : 0);
  Status may_wait;
  if (has_waiting() && waiting_bytes_ + bytes > most)
    may_wait = fail(TC_ERR_LIMIT, "{} bytes of calls wait {}, and at most {} may", waiting_bytes_,
                    awaits_worker_ ? "for other calls to end"
                    : is_stuck()   ? "for code"
                                   : "until earlier answers are read",
                    most);
  else
    may_wait = channel_.charge(waiting.charge, bytes);
  if (!may_wait && !(is_barrier && waiting_bytes_ + bytes <= most)) {
    if (is_barrier) return broken("its barriers fill what may wait here");
    return refuse(header, body, may_wait.error()), true;
  }
  waiting.body = wire::private_copy(body);
  if (resumed_since_ns_)
    waiting_.push_front(std::move(waiting));
  else
    waiting_.push_back(std::move(waiting));
  waiting_bytes_ += bytes;
  return true;
}

// Nothing waits for another thread when it was refused.
bool CallReceiver::queue_for_worker(const wire::FrameHeader& header, ByteView body, const CallWish* wish) {
  const auto others = waiting_.size();
  if (!queue(header, body)) return false;
  if (waiting_.size() == others) return true;
  awaits_its_own_calls_ = wish == nullptr;
  if (wish != nullptr) wish_ = *wish;
  if (!awaits_worker_) link_.await_worker();
  awaits_worker_ = true;
  return true;
}

bool CallReceiver::may_go_on() noexcept {
  if (awaits_its_own_calls_ ? handed_over_ != 0 : !places_.may_place(wish_, &link_)) return false;
  awaits_worker_ = false;
  return true;
}

bool CallReceiver::queue_for_compiler(const wire::FrameHeader& header, ByteView body) {
  Waiting waiting{header, {}, resumed_since_ns_ ? *resumed_since_ns_ : now_ns(), {}};
  // Code that was asked for is taken in any case: calls wait for it.
  if (const auto counted = channel_.charge(waiting.charge, body.size() + sizeof(Waiting));
      !counted && header.kind != wire::Kind::code)
    return refuse(header, body, counted.error()), true;
  awaits_compiler_ = true;
  waiting.body = wire::private_copy(body);
  const auto bytes = waiting.size();
  waiting_.push_front(std::move(waiting));
  waiting_bytes_ += bytes;
  return true;
}

bool CallReceiver::continue_after_compiling() {
  awaits_compiler_ = false;
  return resume();
}

bool CallReceiver::resume_one(const wire::FrameHeader& header, Bytes& body) {
  if (header.kind == wire::Kind::call) return on_call(header, body.data());
  if (header.kind == wire::Kind::call_code) return on_call_code(header, body);
  return on_barrier(header, body);
}

// Of a call whose code may be had: it was taken back, or waited for too long.
std::optional<Error> CallReceiver::why_not_run(const wire::FrameHeader& header, ByteView body) const {
  if (has_canceled() && is_canceled(header, body))
    return Error{TC_ERR_CANCELED, "its caller canceled the call before it ran"};
  if (resumed_since_ns_ && is_late(header, body, *resumed_since_ns_))
    return Error{TC_ERR_TIMEOUT, "the call waited here past its deadline and was not run"};
  return std::nullopt;
}

// Runs what waited, in order, until something waits for code again, the peer is behind with reading the answers, or the turn
// is over.
bool CallReceiver::resume() {
  while (has_waiting() && !is_stuck() && !channel_.is_behind() && !executor_.slice().is_over()) {
    auto [header, body, since_ns, charge, is_refused] = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= body.size() + sizeof(Waiting);
    if (header.kind == wire::Kind::code) {  // it was compiled
      awaited_ = header.number;
      const auto code = wire::decode_code(body);
      return code ? on_code(header, *code, body) : broken(code.error().message);
    }
    if (is_refused) {
      refuse_as_draining(header, body);
      continue;
    }
    resumed_since_ns_ = since_ns;
    bool fine = false;
    try {
      fine = resume_one(header, body);
    } catch (...) {
      resumed_since_ns_.reset();
      throw;
    }
    resumed_since_ns_.reset();
    if (!fine) return false;
  }
  if (!has_waiting()) {
    soft_limit_ = first_soft_limit_;
    canceled_.clear();
  }
  return true;
}

// ---- Calls that the peer takes back

void CallReceiver::foresee_cancel(uint64_t token) {
  if (canceled_ahead_.size() < canceled_limit) canceled_ahead_.insert(token);
}

void CallReceiver::cancel(uint64_t token) {
  canceled_ahead_.erase(token);
  places_.cancel(&link_, token);
  if (has_waiting() && canceled_.size() < canceled_limit) canceled_.insert(token);
}

// The peer's own call alone: of one that it forwarded, the token is another node's.
bool CallReceiver::is_canceled(const wire::FrameHeader& header, ByteView body) const {
  const auto call = read_call_front(header, body);
  return call.header && !call.return_address &&
         (canceled_ahead_.contains(call.header->token) || canceled_.contains(call.header->token));
}

// ---- Calls that wait: shown to snapshots, failed when the link is lost

void CallReceiver::show_call(const wire::FrameHeader& header, ByteView body, ShowCall show) const {
  const auto call = read_call_front(header, body);
  if (call.header)
    show(call.return_address ? call.return_address->instance : channel_.peer().instance, call.header->token);
}

void CallReceiver::each_waiting(ShowCall show) const {
  for (const auto& frame : waiting_) show_call(frame.header, frame.body, show);
}

void CallReceiver::fail_unrun(const wire::FrameHeader& header, ByteView body, const Error& reason) {
  auto call = read_call_front(header, body);
  if (!call.header || !call.return_address) return;
  call.return_address->came_by = channel_.id();
  call.return_address->may_connect = is_believed_;
  answers_.fail_later(call.header->token, &*call.return_address, reason);
}

void CallReceiver::fail_unsent(const wire::FrameHeader& header, ByteView body, const Error& reason) {
  const auto call = read_call_front(header, body);
  if (call.header && call.return_address) answers_.fail_forwarded(call.header->token, *call.return_address, reason);
}

void CallReceiver::fail_waiting(const Error& reason) {
  for (; !waiting_.empty(); waiting_.pop_front()) fail_unrun(waiting_.front().header, waiting_.front().body, reason);
  waiting_bytes_ = 0;
  canceled_.clear();
  awaits_worker_ = false;
}

// ---- Rights

namespace {

// The numbers for which a link remembers the rights of the keys on whose behalf they are called; code beyond is requested
// again.
constexpr size_t on_behalf_limit = 4096;

// Does code that is held here come with more or fewer signatures than it has?
bool has_other_size(const wire::CodeBody& code, const Bundle& held) noexcept {
  return code.bundle.size() != held.size_for(code.head.carried);
}

}  // namespace

void CallReceiver::take_no_more() noexcept { takes_calls_ = runs_at_once_ = false; }

// Its numbers are withdrawn when a line of the keyring is in play: their code is asked for again, and checked.
void CallReceiver::renew_rights() {
  auto rights = authority_.rights_of(channel_.origin());
  const bool was_restricted = is_restricted_;
  rights_.reset();
  if (rights) rights_ = std::move(*rights);
  is_restricted_ = !rights_ || !rights_->is_all();
  full_rights_ = is_restricted_ ? trust::SharedRights() : trust::SharedRights(trust::CodeRights{.peer = *rights_});
  may_run_ = rights_ && rights_->run() != trust::Run::none;
  const auto* const grant = rights_ ? rights_->grant() : nullptr;
  is_believed_ =
      rights_ && rights_->run() == trust::Run::any && (grant == nullptr || grant->where != trust::Where::cell);
  if (!rights)
    why_not_ = std::move(rights).error();
  else if (!may_run_)
    why_not_ = {TC_ERR_DENIED, fmt::format("{} may run nothing here: run=none", rights_->whose())};
  takes_calls_ = may_run_ && places_.takes_calls();
  runs_at_once_ = takes_calls_ && !places_.may_need_cell(is_restricted_);
  on_behalf_.clear();
  if (!was_restricted && !is_restricted_) return;
  numbers_ = {};
  code_rights_.clear();
  unusable_.clear();
}

// May the peer run that code, and what may the code do? Where what was sent is held here already, signatures that came with
// the other one count too.
Result<trust::SharedRights> CallReceiver::decide(const wire::Chain& chain, const Bundle* sent, const Bundle* held) {
  if (!is_restricted_ && chain.empty()) return full_rights_;
  if (!rights_) return fail(why_not_);
  const auto shared = chain.empty() ? nullptr : std::make_shared<const wire::Chain>(chain);
  auto rights = authority_.rights_of_code(*rights_, shared, sent != nullptr ? *sent : *held);
  if (!rights && sent != nullptr && held != nullptr)
    if (auto by_held = authority_.rights_of_code(*rights_, shared, *held)) rights = std::move(by_held);
  if (rights) {
    if ((*rights)->author) authority_.record_use(*(*rights)->author);
    return rights;
  }
  ++common_.counters.denied_codes;
  const auto peer = channel_.peer_label();
  const AboutLink about(channel_);
  authority_.log_denial(peer, rights.error());
  return fail(std::move(rights).error());
}

const trust::SharedRights& CallReceiver::restricted_rights_of(const target::Code* code) const {
  const auto found = code_rights_.find(code);
  return found != code_rights_.end() ? found->second : no_rights_;
}

// A peer with limited rights might fill the code's list with worthless signatures.
void CallReceiver::add_signatures(const Bundle& sent, const Bundle& held, bool is_limited) {
  if (sent.signatures() == held.signatures()) return;
  const auto is_worthless = [&](const CodeSignature& one) { return is_limited && !trust::is_valid(one, sent); };
  if (std::ranges::any_of(sent.signatures(), is_worthless) || !code_.codes.add_signatures(sent)) return;
  link_.send_code_again(sent.id());
}

// ---- Code that was sent: checked, loaded, bound to its number

LoadResult CallReceiver::learn(uint32_t number, const wire::CodeBody& code) {
  auto* held = code_.codes.find(code.head.id);
  const bool is_missing = held == nullptr || (code.head.carried & ~held->bundle->carried()) != 0;
  if (is_missing && code.bundle.empty())
    return LoadResult::failed(
        {TC_ERR_NOT_FOUND, fmt::format("{} no longer holds the code {} that it called: register it there again",
                                       channel_.peer_label(), code.head.id.short_hex())});
  const bool is_limited = is_restricted_ || !code.head.chain.empty();
  const bool is_read = is_missing || (!code.bundle.empty() && (is_limited || has_other_size(code, *held->bundle)));
  Result<Bundle> bundle;
  if (is_read) bundle = Bundle::read_carried(code.bundle, code.head.carried, code.head.id);
  if (!bundle) return LoadResult::failed(std::move(bundle).error());
  auto rights = decide(code.head.chain, is_read ? &*bundle : nullptr, held != nullptr ? held->bundle.get() : nullptr);
  if (!rights) return LoadResult::failed(std::move(rights).error());
  const bool in_cell = places_.is_for_cells(**rights);
  if (!is_missing && is_read) add_signatures(*bundle, *held->bundle, is_limited);
  if (is_missing || (!in_cell && !held->is_linked())) {  // not linked: until now it was for cells alone
    const auto& origin = channel_.origin();
    executor_.slice().before_long_work();
    auto loaded = code_.loader.load(is_missing ? std::move(*bundle) : Bundle(*held->bundle),
                                    {origin.host, origin.key, *rights, in_cell}, channel_.id());
    if (!loaded.is_loaded()) return loaded;
    held = loaded.code;
    if (is_missing) code_.slices.record_supplier(code.head.id, channel_.id());
  }
  return bind(number, code.head.chain, *held, std::move(*rights));
}

LoadResult CallReceiver::bind(uint32_t number, const wire::Chain& chain, target::Code& code,
                              trust::SharedRights rights) {
  if (number >= id_prefixes_.size()) id_prefixes_.resize(std::max<size_t>(number + 1, id_prefixes_.size() * 2));
  id_prefixes_[number] = id_prefix_of(code.id());
  const auto* const before = chain.empty() ? numbers_.find(number) : nullptr;
  if (auto bound = bind_rights(number, chain, code, std::move(rights)); !bound)
    return LoadResult::failed(std::move(bound).error());
  unusable_.erase(number);
  if (before != &code)
    if (auto told = channel_.post(wire::Kind::known, 0, number, {}); !told)
      return LoadResult::failed(std::move(told).error());
  return LoadResult::loaded(code);
}

Status CallReceiver::bind_rights(uint32_t number, const wire::Chain& chain, target::Code& code,
                                 trust::SharedRights rights) {
  if (chain.empty()) {
    if (is_restricted_) code_rights_.insert_or_assign(&code, std::move(rights));
    return numbers_.bind(number, code);
  }
  if (on_behalf_.size() >= on_behalf_limit) on_behalf_.clear();
  on_behalf_.insert_or_assign(number, OnBehalf{&code, chain, std::move(rights)});
  return {};
}

}  // namespace tc::node
