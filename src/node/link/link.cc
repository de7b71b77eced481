// SPDX-License-Identifier: Apache-2.0
//
// Hands each frame to the part of the link that it is for, and puts together what came in pieces; replies, barriers, and the
// pace at which a peer is read.
#include "node/link/link.h"

#include <spdlog/logger.h>

#include "base/clock.h"
#include "node/authority.h"
#include "node/call_log.h"
#include "node/links.h"
#include "node/liveness/peer_failures.h"
#include "node/statistics.h"

namespace tc::node {

namespace {

// Frames taken off one link before the others get their turn and the peer gets its memory back.
constexpr size_t frames_a_turn = 1024;
// A peer that has taken nothing for so long, while we do not read either, may be waiting for us in the same way.
constexpr uint64_t longest_standstill_ns = 100'000'000;
// What a frame holds besides a payload or bundle of the largest size.
constexpr size_t frame_overhead = 4096;
// For a peer that has released a link, to run what it was sent.
constexpr uint64_t last_flush_ns = 10'000'000'000;

// Is the frame a call, or the last piece of one? Pieces of an answer look the same.
bool ends_call(const wire::FrameHeader& frame) noexcept {
  return frame.kind == wire::Kind::call || frame.kind == wire::Kind::call_code ||
         (frame.kind == wire::Kind::fragment && frame.number == last_piece);
}

}  // namespace

Link::Link(Links& links, const LinkServices& services, std::unique_ptr<transport::Connection> connection,
           bool initiator)
    : channel_(services.channel, std::move(connection), initiator),
      sender_(channel_, services),
      receiver_(*this, channel_, services),
      slices_(channel_, sender_, receiver_, services.code.slices, services.code.codes),
      links_(links),
      authority_(services.authority),
      in_(&channel_.connection().in()),
      executor_(services.executor),
      answers_(services.answers),
      peer_failures_(services.peer_failures),
      code_(services.code),
      waiter_(services.channel.waiter),
      report_(services.report),
      common_(services.channel.common),
      assembly_(common_.buffers, common_.config.max_message + frame_overhead) {
  channel_.connection().set_owner(this);
}

void Link::end_of_holds() noexcept { links_.on_unheld(); }

void Link::send_code_again(const ContentId& id) { links_.send_again(id); }

Status Link::accept_greeting(ByteView greeting, ByteView own) {
  TC_CHECK(channel_.accept_greeting(greeting, own));
  in_ = &channel_.connection().in();
  renew_rights();
  const auto share = links_.share_of(channel_.origin(), receiver_.rights());
  channel_.set_share(share);
  assembly_.set_share(share);
  sender_.on_ready();
  replace_too_large_replies();
  drain_backlog();
  code_.loader.requests().on_link_ready(*this);
  return {};
}

void Link::renew_rights() {
  receiver_.renew_rights();
  rate_ = receiver_.rights() != nullptr ? authority_.rate_of(*receiver_.rights()) : nullptr;
  record_use();
}

void Link::record_use() {
  if (receiver_.rights() != nullptr) authority_.record_use(*receiver_.rights());
}

// ---- Receiving

size_t Link::receive() {
  executor_.running().link = this;
  if (looks_ahead_) [[unlikely]]
    look_ahead();
  if (std::exchange(compiled_, false) && !receiver_.continue_after_compiling()) return 1;
  if (receiver_.has_waiting()) [[unlikely]]
    return run_held_and_receive();
  if (rate_ != nullptr) [[unlikely]]
    return receive_at_rate();
  return receive(frames_a_turn);
}

// Which of the calls that came while code ran for long have been taken back since. As far as frames lie one behind the other.
void Link::look_ahead() {
  looks_ahead_ = false;
  (void)in_->refill();
  for (const std::byte* at = in_->at();;) {
    const auto header = wire::decode(transport::load_header(at));
    const auto stride = wire::stride(header.length);
    const bool is_frame = header.kind != wire::Kind::none && header.kind != wire::Kind::pad;
    if (!is_frame || stride > static_cast<size_t>(in_->end() - at)) break;
    if (header.kind == wire::Kind::cancel)
      if (const auto token = wire::decode_cancel(wire::private_copy({at + wire::header_bytes, header.length})))
        receiver_.foresee_cancel(*token);
    at += stride;
  }
}

// Calls that were held until the peer had read earlier answers run first; while there are too many, nothing is read
// (call_receiver.h).
size_t Link::run_held_and_receive() {
  const auto before = executor_.executed();
  if (!receiver_.run_held() || !is_ready()) return 1;
  if (executor_.slice().is_over()) {
    looks_ahead_ = executor_.slice().was_long();
    return links_.come_back_to(*this), 1;
  }
  const auto ran = static_cast<size_t>(executor_.executed() - before);
  if (!receiver_.is_full()) return ran + (rate_ != nullptr ? receive_at_rate() : receive(frames_a_turn));
  pause_until_drained();
  return ran;
}

void Link::pause_until_drained() {
  if (std::exchange(awaits_drain_, true)) return;
  drained_bytes_ = channel_.drained_bytes();
  links_.pause(*this, now_ns() + longest_standstill_ns);
}

bool Link::may_go_on(uint64_t now_ns) noexcept {
  if (!awaits_drain_) return now_ns >= paused_until_ns;
  if (receiver_.is_full()) {
    if (receiver_.awaits_worker()) return paused_until_ns = now_ns + longest_standstill_ns, false;
    if (std::exchange(drained_bytes_, channel_.drained_bytes()) != channel_.drained_bytes())
      paused_until_ns = now_ns + longest_standstill_ns;
    if (now_ns < paused_until_ns) return false;
    receiver_.read_on();
  }
  awaits_drain_ = false;
  return true;
}

size_t Link::receive_at_rate() {
  const auto rate = rate_;  // a frame may end the link
  const auto most = std::min<uint64_t>(rate->allowed(now_ns()), frames_a_turn);
  if (most == 0) {
    if (ending_) drop_beyond_rate();
    if (is_ready()) links_.pause(*this, rate->next_ns());
    return 0;
  }
  const auto taken = receive(most);
  rate->spend(taken);
  return taken;
}

// A peer that is gone is not waited for: with a low rate its frames, and the memory that they are in, would stay here for
// hours, and one that connects again and again could leave ever more of them. What a socket of a paused link held is not known.
void Link::drop_beyond_rate() {
  if (const auto dropped = discard_received(); dropped != 0 || paused_until_ns != 0) {
    common_.call_log.warn(
        channel_, fmt::format("what {} sent beyond its rate is not run, as it is gone: {} calls, and what was not "
                              "read yet",
                              peer_label(), dropped));
  }
  channel_.end(*ending_);
}

size_t Link::receive(size_t most) {
  const auto taken = target::receive(*in_, receiver_.numbers(), executor_, *this, most, receiver_.longest_call());
  const bool is_over = executor_.slice().is_over();
  if (is_over) looks_ahead_ = executor_.slice().was_long();
  if (taken == most || (ending_ && taken != 0) || is_over)
    take_up_again();
  else if (ending_ && is_ready() && !receiver_.awaits_compiler() && !receiver_.awaits_worker()) [[unlikely]]
    channel_.end(*ending_);
  return taken;
}

// What is left in memory that the peer writes to is found by the next poll, without a second turn in it.
void Link::take_up_again() {
  if (ending_ || receiver_.may_run_held() || !channel_.connection().is_polled()) links_.come_back_to(*this);
}

size_t Link::discard_received() noexcept {
  size_t calls = 0;
  for (;;) {
    const uint64_t word = in_->peek();
    const auto header = wire::decode(word);
    if (word != 0 && header.kind != wire::Kind::pad && in_->fits(header.length))
      in_->advance(header.length), calls += ends_call(header);
    else if (!in_->refill())
      break;
  }
  in_->release();
  return calls;
}

// Calls that wait for slices are not counted: the peer that has the slices is not read any more.
size_t Link::unsent() const noexcept {
  if (is_lost() || ending_) return 0;
  return channel_.backlog_bytes() + (is_ready() ? 0 : sender_.waiting());
}

// What was accepted is run, whatever became of its sender: by receive(), as events come from inside the transport.
void Link::end(const Error& reason) {
  if (is_lost() || ending_) return;
  if (!is_ready()) return channel_.end(reason);
  links_.come_back_to(*this);
  ending_ = reason;
  channel_.expect_end();
}

void Link::end_now() noexcept {
  if (ending_) channel_.end(*ending_);
}

void Link::post_event(uint32_t what, ByteView body) {
  if (ending_) return;  // nobody is there to read it
  channel_.post_or_disconnect(wire::Kind::cluster_event, 0, what, body);
}

void Link::cancel_call(uint64_t token) noexcept try {
  if (!sender_.cancel(token)) (void)channel_.post(wire::Kind::cancel, 0, 0, {wire::encode_cancel(token)});
} catch (const std::bad_alloc&) {
}

void Link::await_worker() { links_.await_worker(*this); }

void Link::on_compiled() {
  if (!receiver_.awaits_compiler()) return;
  compiled_ = true;
  links_.come_back_to(*this);
}

// ---- Frames

bool Link::on_frame(const wire::FrameHeader& header, std::byte* body) {
  other_calls_ += header.kind == wire::Kind::call || header.kind == wire::Kind::call_code;
  const ByteView view(body, header.length);
  switch (header.kind) {
    case wire::Kind::call: record_for_snapshots(header, view); return receiver_.on_call(header, body);
    case wire::Kind::call_code: record_for_snapshots(header, view); return receiver_.on_call_code(header, view);
    case wire::Kind::fragment: return on_fragment(header.number, view);
    default: return on_control(header, view);
  }
}

bool Link::on_control(const wire::FrameHeader& header, ByteView body) {
  switch (header.kind) {
    case wire::Kind::code: return on_code(header, body);
    case wire::Kind::need: return on_need(header, body);
    case wire::Kind::known: return sender_.on_known(header.number);
    case wire::Kind::reply: return on_reply(header, body);
    case wire::Kind::barrier:
      return header.number == wire::barrier_ask ? receiver_.on_barrier(header, body) : on_barrier_answer(header, body);
    case wire::Kind::cancel: return on_cancel(body);
    case wire::Kind::cluster_event: return on_event(header.number, body);
    case wire::Kind::compile: return on_compile(header.number, body);
    case wire::Kind::statistics: return on_statistics(header.number, body);
    case wire::Kind::disconnect: return on_disconnect(body);
    default:
      on_broken(fmt::format("a frame of kind {} has no place among calls", static_cast<int>(header.kind)));
      return false;
  }
}

void Link::on_effects() { answers_.end_running_call(executor_); }

void Link::on_broken(std::string what) {
  executor_.reset();
  channel_.disconnect_for(what);
}

bool Link::on_need(const wire::FrameHeader& header, ByteView body) {
  const auto need = wire::decode_need(wire::private_copy(body));
  if (!need) return channel_.disconnect_for(need.error().message);
  return (header.flags & wire::flag_for_another) != 0 ? slices_.on_question(header.number, *need)
                                                      : sender_.on_need(header.number);
}

bool Link::on_code(const wire::FrameHeader& header, ByteView body) {
  const auto copy = wire::private_copy(body);
  const auto code = wire::decode_code(copy);
  if (!code) return channel_.disconnect_for(code.error().message);
  return (header.flags & wire::flag_for_another) != 0 ? slices_.on_answer(header.number, *code)
                                                      : receiver_.on_code(header, *code, copy);
}

bool Link::on_cancel(ByteView body) {
  const auto token = wire::decode_cancel(wire::private_copy(body));
  if (!token) return channel_.disconnect_for(token.error().message);
  receiver_.cancel(*token);
  return true;
}

bool Link::on_event(uint32_t what, ByteView body) {
  if (!receiver_.is_believed()) return true;
  if (const auto handled = peer_failures_.on_event(*this, what, wire::private_copy(body)); !handled)
    return channel_.disconnect_for(handled.error().message);
  return true;
}

bool Link::on_compile(uint32_t what, ByteView body) {
  const auto copy = wire::private_copy(body);
  if (what == wire::compile_question) {
    const auto question = wire::decode_compile_question(copy);
    if (!question) return channel_.disconnect_for(question.error().message);
    code_.compiles_for_peers.on_question(*this, *question);
    return true;
  }
  if (what != wire::compile_answer)
    return channel_.disconnect_for(fmt::format("a compile frame is of type {} when 0 and 1 are known", what));
  const auto answer = wire::decode_compile_answer(copy);
  if (!answer) return channel_.disconnect_for(answer.error().message);
  code_.loader.requests().on_answer(*this, *answer);
  return true;
}

bool Link::on_disconnect(ByteView body) {
  const auto disconnect = wire::decode_disconnect(wire::private_copy(body));
  if (!disconnect) return channel_.disconnect_for(disconnect.error().message);
  // What the peer says of the end counts more than what the transport does.
  const bool is_gone = ending_.has_value();
  ending_.reset();
  if (disconnect->status != TC_OK) {
    end(Error{disconnect->status, fmt::format("{} closed the connection: {}", peer_label(), disconnect->reason)});
  } else if (!channel_.is_accepted()) {
    end(channel_.is_released() ? Error{TC_ERR_CLOSED, "the endpoint was closed here"} : closed_by_peer());
  } else {
    is_released_by_peer_ = true;
    if (is_gone) end(closed_by_peer());
    links_.on_released_by_peer(*this);
  }
  return !is_lost();
}

// ---- Replies

wire::Reply Link::too_large(const wire::Reply& reply) const {
  auto instead = reply;
  instead.bytes = {};
  instead.status = TC_ERR_TOO_LARGE;
  instead.message = fmt::format("{}: the answer is {} bytes when {} takes at most {}", common_.self.label,
                                reply.bytes.size(), peer_label(), peer().max_message);
  return instead;
}

// Only its greeting says what a peer takes, and answers to return addresses may have been given before.
void Link::replace_too_large_replies() {
  channel_.replace_queued([&](const Channel::Unsent& frame) -> std::optional<Bytes> {
    if (frame.header.kind != wire::Kind::reply || frame.header.length <= peer().max_message) return std::nullopt;
    const auto reply = wire::decode_reply(frame.body);
    if (!reply || reply->bytes.size() <= peer().max_message) return std::nullopt;
    const auto body = wire::encode_reply(too_large(*reply));
    Bytes whole(wire::header_bytes + body.size());
    const auto word = wire::encode(wire::Kind::reply, 0, 0, static_cast<uint32_t>(body.size()));
    std::memcpy(whole.data(), &word, sizeof word);
    std::ranges::copy(body, whole.begin() + wire::header_bytes);
    return whole;
  });
}

void Link::post_reply(const wire::Reply& reply) {
  if (ending_) return;  // nobody is there to read it
  if (is_ready() && reply.bytes.size() > peer().max_message) return post_reply(too_large(reply));
  const bool report_only = reply.token == 0;
  if (report_only && channel_.has_backlog()) {
    ++untold_failures_;  // the peer is behind with reading: count, and tell the sum later
    return;
  }
  send_reply(reply);
}

void Link::post_reply_for(const wire::ReturnAddress& caller, const wire::Reply& reply) {
  if (ending_ || reply.token == 0) return;
  if (is_ready() && reply.bytes.size() > peer().max_message) return post_reply_for(caller, too_large(reply));
  const auto sent = channel_.post(wire::Kind::reply, wire::flag_return_address, 0,
                                  {wire::encode_return_address(caller), wire::encode_reply_head(reply), reply.bytes});
  if (!sent) channel_.disconnect(sent.error());
}

void Link::send_reply(const wire::Reply& reply) {
  const auto sent = channel_.post(wire::Kind::reply, 0, 0, {wire::encode_reply_head(reply), reply.bytes});
  if (!sent) channel_.disconnect(sent.error());
}

void Link::report_untold_failures() {
  if (untold_failures_ == 0 || !is_ready()) return;
  wire::Reply report;
  report.status = TC_ERR_IFUNC;
  report.node_id = common_.self.wire_id();
  report.message = fmt::format("{}: {} more calls failed", common_.self.label, std::exchange(untold_failures_, 0));
  send_reply(report);
}

bool Link::drain_backlog() {
  channel_.drain_backlog();
  if (!channel_.has_backlog()) {
    report_untold_failures();
    if (owes_statistics_ && is_ready()) answer_statistics();
  }
  if (!receiver_.may_run_held() || !is_ready()) return false;
  links_.come_back_to(*this);
  return true;
}

bool Link::on_reply(const wire::FrameHeader& header, ByteView body) {
  return take_reply(header, wire::private_copy(body));
}

// `lost`: `body` is the beginning alone, and its rest does not come for this reason. Null: it is whole.
bool Link::take_reply(const wire::FrameHeader& header, ByteView body, const Error* lost) {
  const auto end_for = [&](const Error& why) {
    if (lost == nullptr) return channel_.disconnect_for(why.message);
    return channel_.disconnect(*lost), false;
  };
  size_t skip = 0;
  std::optional<wire::ReturnAddress> caller;
  if ((header.flags & wire::flag_return_address) != 0) {
    auto named = wire::decode_return_address(body, skip);
    if (!named) return end_for(named.error());
    caller = std::move(*named);
  }
  auto reply = wire::decode_reply(body.subspan(skip));
  if (!reply) return end_for(reply.error());
  if (lost != nullptr)
    reply = wire::Reply{
        .token = reply->token, .status = lost->code, .node_id = common_.self.wire_id(), .message = lost->message};
  if (caller)
    answers_.pass_on(*caller, *reply, *this);
  else if (reply->token == 0)
    record_failure({reply->status, reply->message});
  else
    answers_.complete(*reply);
  return true;
}

void Link::record_failure(const Error& failure) {
  sender_.record_failure(failure);
  if (!common_.log.should_log(spdlog::level::info)) return;
  const auto peer = peer_label();
  const AboutLink about(channel_);
  common_.log.info("a call failed: {}", failure.message);
}

// ---- Barriers

bool Link::advance(Flush& flush) {
  if (is_lost()) return true;
  if (flush.barrier == 0) {
    if (sender_.waiting() != 0) return false;
    const auto sent =
        channel_.post(wire::Kind::barrier, 0, wire::barrier_ask, {wire::encode_barrier(barriers_sent_ + 1)});
    if (!sent) return flush.failure = sent.error(), true;
    flush.barrier = ++barriers_sent_;
  }
  return barriers_passed_ >= flush.barrier;
}

bool Link::is_run_by_peer() {
  if (!sender_.has_called()) return true;
  if (last_flush_by_ns_ == 0) last_flush_by_ns_ = now_ns() + last_flush_ns;
  return advance(last_flush_) || now_ns() >= last_flush_by_ns_;
}

Status Link::flush(Deadline deadline) {
  const Hold hold(*this);
  Flush flush;
  const bool in_time = waiter_.wait_until(deadline, [&] { return advance(flush); });
  if (flush.barrier == 0) {
    if (is_lost()) return fail(reason());
    if (flush.failure) return fail(std::move(*flush.failure));
    return fail(TC_ERR_TIMEOUT, "{} calls for {} still wait for their code", sender_.waiting(), peer_label());
  }
  if (auto failure = sender_.take_failure()) return fail(std::move(*failure));
  if (barriers_passed_ >= flush.barrier) return {};
  if (is_lost()) return fail(reason());
  if (!in_time) return fail(TC_ERR_TIMEOUT, "{} has not run everything within the deadline", peer_label());
  return fail(TC_ERR_INTERNAL, "flush of {} ended without a cause", peer_label());
}

bool Link::on_barrier_answer(const wire::FrameHeader& header, ByteView body) {
  const auto number = wire::decode_barrier(wire::private_copy(body));
  if (!number) return channel_.disconnect_for(number.error().message);
  if (header.number != wire::barrier_answer || *number > barriers_sent_ || *number <= barriers_passed_)
    return channel_.disconnect_for(
        fmt::format("a barrier frame of type {} answers barrier {} when {} were sent and {} answered", header.number,
                    *number, barriers_sent_, barriers_passed_));
  barriers_passed_ = *number;
  return true;
}

// ---- Questions about a node
//
//   asker       one question at a time: the next one only when the answer has come, be it that nobody waits for it any more
//   answerer    answers at once. While the peer is behind with reading it keeps one question in mind, and no more: what such
//               a peer can make us keep is bounded

Status Link::ask_statistics(uint64_t token) {
  if (is_lost()) return fail(reason());
  if (awaited_statistics_)
    return fail(TC_ERR_BUSY, "{} has not answered the last question for its statistics yet", peer_label());
  TC_CHECK(channel_.post(wire::Kind::statistics, 0, wire::statistics_question, {}));
  awaited_statistics_ = token;
  return {};
}

bool Link::on_statistics(uint32_t what, ByteView body) {
  if (what == wire::statistics_question) return on_statistics_question(body);
  if (what == wire::statistics_answer) return on_statistics_answer(body);
  return channel_.disconnect_for(fmt::format("a statistics frame is of type {} when 0 and 1 are known", what));
}

bool Link::on_statistics_question(ByteView body) {
  if (const auto question = wire::decode_statistics_question(body); !question)
    return channel_.disconnect_for(question.error().message);
  if (owes_statistics_)
    return channel_.disconnect_for("it asks for statistics again when the last question is not answered yet");
  if (channel_.has_backlog())
    owes_statistics_ = true;
  else
    answer_statistics();
  return !is_lost();
}

void Link::answer_statistics() {
  owes_statistics_ = false;
  if (ending_) return;  // nobody is there to read it
  wire::StatisticsAnswer answer;
  if (receiver_.rights() != nullptr) {
    answer.report = report_();
  } else {
    answer.status = TC_ERR_DENIED;
    answer.message = fmt::format("{}: {} may not connect here, and is told nothing about this node", common_.self.label,
                                 peer_label());
  }
  // What the peer takes may be less, and it counts the answer's other parts, too.
  const auto most = std::min<size_t>(wire::longest_statistics_answer, peer().max_message + frame_overhead / 2);
  channel_.post_or_disconnect(wire::Kind::statistics, 0, wire::statistics_answer,
                              wire::encode_statistics_answer(std::move(answer), most));
}

bool Link::on_statistics_answer(ByteView body) {
  const auto copy = wire::private_copy(body);
  const auto answer = wire::decode_statistics_answer(copy);
  if (!answer) return channel_.disconnect_for(answer.error().message);
  if (!awaited_statistics_) return channel_.disconnect_for("it tells its statistics when nobody asked for them");
  const auto lines = answer->status == TC_OK ? lines_of(answer->report) : std::string();
  answers_.complete({.token = *std::exchange(awaited_statistics_, std::nullopt),
                     .status = answer->status,
                     .node_id = peer().node_id,
                     .message = answer->message,
                     .bytes = as_bytes(lines)});
  return true;
}

// ---- Calls that wait here

void Link::record_for_snapshots(const wire::FrameHeader& header, ByteView body) {
  auto& snapshots = peer_failures_.snapshots();
  if (!snapshots.recording() || !receiver_.may_run()) [[likely]]
    return;
  receiver_.show_call(header, body,
                      [&](uint64_t caller, uint64_t token) { snapshots.record_call(*this, caller, token); });
}

void Link::each_waiting_call(ShowCall show) const {
  receiver_.each_waiting(show);
  sender_.each_waiting(show);
  // Once the connection is lost, no other node can know of what it did not take.
  if (!is_lost()) return;
  channel_.each_unsent([&](const Channel::Unsent& frame) { receiver_.show_call(frame.header, frame.body, show); });
}

void Link::fail_waiting() {
  sender_.fail_waiting(reason());
  for (auto frame = channel_.unsent(); frame; frame = channel_.unsent()) {
    receiver_.fail_unsent(frame->header, frame->body, reason());
    channel_.drop_unsent();
  }
  if (const auto calls = receiver_.waiting(); calls != 0) {
    common_.call_log.warn(channel_, fmt::format("{} calls of {} are not run: they waited for code that it was asked "
                                                "for again",
                                                calls, peer_label()));
  }
  receiver_.fail_waiting(reason());
}

// ---- Frames that came in pieces

bool Link::on_fragment(uint32_t mark, ByteView piece) {
  if (mark > last_piece)
    return channel_.disconnect_for(fmt::format("a fragment is marked {} when 0 and 1 are known", mark));
  const auto added = assembly_.add(piece, mark == last_piece);
  if (!added) return channel_.disconnect_for(added.error().message);
  if (*added) return on_whole(assembly_.take());
  common_.work.unfinished = true;
  const auto refused = assembly_.take_refused();
  return refused ? refuse_unfinished(*refused) : true;
}

bool Link::on_whole(Assembly::Whole whole) {
  if (whole.header.kind != wire::Kind::reply) return on_frame(whole.header, whole.body);
  const bool is_own = (whole.header.flags & wire::flag_return_address) == 0;
  return is_own ? on_large_reply(std::move(whole)) : take_reply(whole.header, {whole.body, whole.header.length});
}

// Its bytes stay where they were put together: the future gets that memory.
bool Link::on_large_reply(Assembly::Whole whole) {
  const auto reply = wire::decode_reply({whole.body, whole.header.length});
  if (!reply) return channel_.disconnect_for(reply.error().message);
  answers_.complete(*reply, std::move(whole.memory));
  return true;
}

// While it is not read for a reason of ours, nothing can come.
bool Link::expire_unfinished(uint64_t passed_ns) {
  if (!is_ready() || !assembly_.is_collecting()) return true;
  if (paused_until_ns != 0 || ending_ || receiver_.may_run_held() || !assembly_.is_stalled(passed_ns)) return false;
  assembly_.give_up(
      Error{TC_ERR_TIMEOUT, fmt::format("{} of them have come, and then less than {} in {} s", assembly_.come(),
                                        Assembly::least_bytes, Assembly::stall_ns / 1'000'000'000)});
  (void)refuse_unfinished(*assembly_.take_refused());
  return true;
}

// There was no memory for it, or its rest does not come: its caller, or the call that waits for it, fails.
bool Link::refuse_unfinished(const Assembly::Refused& refused) {
  const auto& [header, why, beginning] = refused;
  const Error told{why.code, fmt::format("{} bytes came from {}: {}", header.length, peer_label(), why.message)};
  if (header.kind == wire::Kind::call || header.kind == wire::Kind::call_code) {
    receiver_.refuse({header.kind, header.flags, header.number, static_cast<uint32_t>(beginning.size())}, beginning,
                     told);
    return true;
  }
  if (header.kind != wire::Kind::reply) return channel_.disconnect(told), false;
  return take_reply(header, beginning, &told);
}

}  // namespace tc::node
