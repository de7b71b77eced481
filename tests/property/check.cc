// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

namespace tc::property {

namespace {

// What a call has in front of its payload: code, its header, a return address. At most, with the ifuncs of this test.
constexpr uint64_t most_overhead = 16 * 1024;
constexpr size_t most_said = 20;

// The runs of one message at one hop.
struct Ran {
  const witness_run* first = nullptr;
  uint32_t times = 0;
  uint8_t node = 0;
  bool was_killed = false;  // in the middle of a run, which may have sent the message on already
};

struct Tiny {
  size_t ran = 0, sent = 0, surely_sent = 0;
};

const char* name_of(Way way) {
  static constexpr const char* names[] = {"send", "send_many", "send_with_code", "call"};
  return names[static_cast<size_t>(way)];
}

class Checker {
 public:
  Checker(const Journal& journal, size_t nodes) : journal_(journal), nodes_(nodes) {}

  Findings run() {
    collect();
    for (size_t node = 0; node < nodes_; ++node) {
      check_links(node);
      check_messages(node);
      check_flushes(node);
    }
    check_tiny();
    return std::move(found_);
  }

 private:
  const NodeLog& log(size_t node) const { return journal_.node[node]; }
  const Life& life(size_t node, uint32_t incarnation) const {
    return log(node).life[std::min<size_t>(incarnation, most_lives - 1)];
  }
  size_t messages(size_t node) const { return std::min<size_t>(log(node).messages, most_messages); }
  Ran& ran(size_t source, uint32_t number, size_t hop) { return ran_[source][number * hops_ + hop]; }

  template <class... Values>
  void wrong(fmt::format_string<Values...> text, Values&&... values) {
    if (found_.wrong.size() < most_said) found_.wrong.push_back(fmt::format(text, std::forward<Values>(values)...));
  }
  template <class... Values>
  void missing(fmt::format_string<Values...> text, Values&&... values) {
    ++found_.missing;
    wrong(text, std::forward<Values>(values)...);
  }

  std::string name(size_t source, uint32_t number) const {
    const auto& sent = log(source).sent[number];
    const auto& endpoint = log(source).endpoint[sent.endpoint];
    auto text = fmt::format("node {}'s message {} ({}, {} bytes, by endpoint {} to node {}", source, number,
                            name_of(sent.way), sent.size, sent.endpoint, endpoint.peer);
    for (size_t hop = 0; hop < sent.hops; ++hop) {
      const auto step = sent.route[hop];
      const char* const how = (step & WITNESS_INJECTS) != 0    ? "injected at"
                              : (step & WITNESS_FORWARDS) != 0 ? "forwarded to"
                                                               : "forwarded as another to";
      text += fmt::format(", {} node {}", how, step & WITNESS_NODE);
    }
    if (sent.then == WITNESS_REPLIES) text += fmt::format(", answer of {} bytes", sent.reply_size);
    if (sent.then == WITNESS_FAILS) text += ", fails";
    return text + ")";
  }

  // ---- What ran

  void collect() {
    for (size_t source = 0; source < nodes_; ++source) ran_[source].resize(messages(source) * hops_);
    for (size_t node = 0; node < nodes_; ++node) {
      const auto& runs = log(node).runs();
      if (runs.count > runs.capacity) wrong("the log of node {} is full: use fewer steps", node);
      for (const auto& run : std::span(runs.run, std::min<size_t>(runs.count, runs.capacity))) collect(node, run);
    }
  }

  void collect(size_t node, const witness_run& run) {
    if (run.complete == 0) {
      if (!life(node, run.incarnation).killed) return missing("a run at node {} has not ended", node);
      if (run.source < nodes_ && run.number < messages(run.source) && run.hop <= WITNESS_MOST_HOPS)
        ran(run.source, run.number, run.hop).was_killed = true;
      return;
    }
    ++found_.ran;
    static constexpr const char* verdicts[] = {"", "", "a damaged head", "another size than was sent", "damaged bytes"};
    if (run.verdict > WITNESS_TINY)
      return wrong("a message with {} ran at node {}: {} bytes, it says that it is node {}'s message {}",
                   verdicts[run.verdict], node, run.size, run.source, run.number);
    if (run.verdict == WITNESS_TINY) {
      ++tiny_[node][run.size == 0 ? 0 : run.source % most_nodes][run.size == 0].ran;
      return;
    }
    if (run.source >= nodes_ || run.number >= messages(run.source) || run.hop > WITNESS_MOST_HOPS)
      return wrong("node {} ran message {} of node {}, hop {}, which was never sent", node, run.number, run.source,
                   run.hop);
    auto& all = ran(run.source, run.number, run.hop);
    if (++all.times > 1) return wrong("{} ran {} times at hop {}", name(run.source, run.number), all.times, run.hop);
    all.first = &run;
    all.node = static_cast<uint8_t>(node);
    const auto& sent = log(run.source).sent[run.number];
    if (run.size != sent.size)
      wrong("{} had {} bytes when it ran at node {}", name(run.source, run.number), run.size, node);
    if (run.seq < sent.begun) wrong("{} ran before it was sent", name(run.source, run.number));
    const auto& endpoint = log(run.source).endpoint[sent.endpoint];
    const auto expected = run.hop == 0 ? endpoint.peer : sent.route[run.hop - 1] & WITNESS_NODE;
    if (run.hop > sent.hops || node != static_cast<size_t>(expected))
      wrong("{} ran at node {}, hop {}", name(run.source, run.number), node, run.hop);
    if (run.hop == 0 && run.incarnation != endpoint.peer_incarnation)
      wrong("{} ran at incarnation {} of its node when the endpoint led to {}", name(run.source, run.number),
            run.incarnation, endpoint.peer_incarnation);
  }

  // ---- What may be lost

  bool has_ended(size_t node) const {
    for (uint32_t i = 0; i < log(node).lives; ++i)
      if (life(node, i).ending != 0) return true;
    return false;
  }
  bool little_memory(size_t node) const { return log(node).limits.little_memory; }
  bool little_memory(size_t node, const Sent& sent) const {
    return little_memory(node) || little_memory(log(node).endpoint[sent.endpoint].peer);
  }

  // A node that has ended cannot send its code to one that has freed it meanwhile.
  bool takes_code_along(const Life& own, size_t to) const { return own.ending != 0 && log(to).limits.little_code; }

  bool is_too_large(const Sent& sent, size_t to) const {
    return sent.size + most_overhead > log(to).limits.max_message;
  }

  // May what was sent by this endpoint, and has not run, be lost without a word?
  bool may_lose(size_t node, const EndpointLife& endpoint) const {
    const auto& own = life(node, endpoint.incarnation);
    return own.killed || own.slow_end || takes_code_along(own, endpoint.peer) ||
           life(endpoint.peer, endpoint.peer_incarnation).ending != 0 || endpoint.found_lost != 0 ||
           endpoint.how == Ending::at_once || endpoint.how == Ending::with_error || little_memory(node) ||
           little_memory(endpoint.peer);
  }
  // And what an ifunc at `node` sent to another one?
  bool may_lose(size_t node, const witness_run& run, size_t to) const {
    const auto& own = life(node, run.incarnation);
    return own.killed || own.slow_end || takes_code_along(own, to) || has_ended(to) || little_memory(node) ||
           little_memory(to);
  }

  void check_links(size_t node) {
    for (uint32_t i = 0; i < log(node).endpoints; ++i) {
      const auto& endpoint = log(node).endpoint[i];
      if (endpoint.found_lost == 0 || life(endpoint.peer, endpoint.peer_incarnation).ending != 0) continue;
      if (little_memory(node) || little_memory(endpoint.peer)) continue;
      wrong("node {}'s endpoint {} to node {}, which lives, was lost: {} ({})", node, i, endpoint.peer,
            endpoint.why_lost, static_cast<int>(endpoint.lost_status));
    }
  }

  // ---- Messages

  struct Order {
    uint64_t last_seq = 0;
    uint32_t last = 0;
    std::optional<uint32_t> gap;
  };

  void check_messages(size_t node) {
    std::vector<Order> orders(log(node).endpoints);
    for (uint32_t number = 0; number < messages(node); ++number) {
      const auto& sent = log(node).sent[number];
      if (sent.state == State::none) continue;
      const auto& endpoint = log(node).endpoint[sent.endpoint];
      if (sent.state == State::accepted) ++found_.accepted;
      if (sent.state == State::refused) {
        ++found_.refused;
        check_refusal(node, number, sent, endpoint);
      }
      if (sent.state == State::begun && !life(node, sent.incarnation).killed)
        wrong("{} was never taken nor refused", name(node, number));
      if (is_call(sent.way)) check_call(node, number, sent, endpoint);
      if (sent.size < WITNESS_NAMED) {
        count_tiny(node, sent, endpoint);
        continue;
      }
      check_first_run(node, number, sent, endpoint, orders[sent.endpoint]);
      for (size_t hop = 0; hop <= sent.hops; ++hop) check_hop(node, number, sent, hop);
    }
  }

  void check_refusal(size_t node, uint32_t number, const Sent& sent, const EndpointLife& endpoint) {
    if (sent.size >= WITNESS_NAMED && ran(node, number, 0).times != 0)
      wrong("{} was refused with {} and ran", name(node, number), int{sent.status});
    const bool may = [&] {
      switch (sent.status) {
        case TC_ERR_BUSY: return true;
        case TC_ERR_TOO_LARGE: return is_too_large(sent, endpoint.peer);
        case TC_ERR_DISCONNECTED:
        case TC_ERR_CLOSED: return may_lose(node, endpoint);
        case TC_ERR_LIMIT:
        case TC_ERR_NO_MEMORY: return little_memory(node) || little_memory(endpoint.peer);
        default: return false;
      }
    }();
    if (!may) wrong("{} was refused with {} without a cause", name(node, number), int{sent.status});
  }

  // Does a call's error say by itself that the call did not run, whatever became of those behind it?
  static bool is_told_alone(const Sent& sent) {
    return is_call(sent.way) && sent.told != 0 && sent.status != TC_OK && sent.status != TC_ERR_DISCONNECTED &&
           sent.status != TC_ERR_CLOSED;
  }

  void check_first_run(size_t node, uint32_t number, const Sent& sent, const EndpointLife& endpoint, Order& order) {
    const auto& first = ran(node, number, 0);
    if (first.times == 0) {
      // A call may come too late for its deadline, and is not run then, whether its sender still waits or not.
      if (sent.state != State::accepted || is_told_alone(sent) || sent.deadline_ms != 0) return;
      if (!order.gap) order.gap = number;
      if (is_call(sent.way) && sent.told != 0) return;
      if (may_lose(node, endpoint)) return void(++found_.lost);
      missing("{} was accepted and has not run", name(node, number));
      return;
    }
    if (sent.state == State::accepted && sent.size > log(endpoint.peer).limits.max_message)
      wrong("{} was accepted when max-message of its target is {}", name(node, number),
            log(endpoint.peer).limits.max_message);
    if (first.first->seq < order.last_seq)
      wrong("{} ran before message {}, which was sent before by the same endpoint", name(node, number), order.last);
    order.last_seq = first.first->seq;
    order.last = number;
    if (order.gap && !little_memory(node) && !little_memory(endpoint.peer))
      wrong("{} ran when message {}, sent before by the same endpoint, did not", name(node, number), *order.gap);
  }

  void check_hop(size_t source, uint32_t number, const Sent& sent, size_t hop) {
    const auto& here = ran(source, number, hop);
    if (here.times == 0 || here.first->action == 0 || hop == sent.hops) {
      if (hop < sent.hops && ran(source, number, hop + 1).times != 0 && !here.was_killed)
        wrong("{} ran at hop {} and was not sent there by hop {}", name(source, number), hop + 1, hop);
      return;
    }
    const auto& run = *here.first;
    const size_t to = sent.route[hop] & WITNESS_NODE;
    const auto& next = ran(source, number, hop + 1);
    if (run.status != TC_OK) {
      if (next.times != 0) wrong("{} ran at hop {} when hop {} was refused", name(source, number), hop + 1, hop);
      const bool may = [&] {
        switch (run.status) {
          case TC_ERR_TOO_LARGE: return is_too_large(sent, to);
          case TC_ERR_DISCONNECTED: return has_ended(to) || has_ended(source) || little_memory(here.node);
          case TC_ERR_UNSUPPORTED: return has_ended(to);  // no process listens there, so no memory can be shared
          case TC_ERR_LIMIT: return has_ended(to) || little_memory(here.node);
          default: return false;
        }
      }();
      if (!may)
        wrong("{} could not go on from node {}: {}", name(source, number), here.node, static_cast<int>(run.status));
      return;
    }
    if (next.times != 0) return;
    const bool answers = (run.action & WITNESS_INJECTS) == 0 && is_call(sent.way);
    if (answers && (sent.told != 0 || sent.given_up) && sent.status != TC_OK) return;
    // Until the next node has greeted, nobody knows what it takes.
    if (may_lose(here.node, run, to) || is_too_large(sent, to)) return void(++found_.lost);
    if (answers && sent.deadline_ms != 0) return;
    missing("{} left node {} and has not run at hop {}", name(source, number), here.node, hop + 1);
  }

  // ---- Calls

  void check_call(size_t node, uint32_t number, const Sent& sent, const EndpointLife& endpoint) {
    if (sent.state != State::accepted || sent.given_up) return;
    if (sent.told == 0) {
      if (!life(node, sent.incarnation).killed) missing("{} has not ended", name(node, number));
      return;
    }
    if (sent.status == TC_OK) {
      ++found_.answered;
      return check_answer(node, number, sent);
    }
    ++found_.failed;
    if (!has_cause(node, number, sent, endpoint))
      wrong("{} failed without a cause: {}, code {}: {}", name(node, number), int{sent.status}, sent.code, sent.why);
  }

  void check_answer(size_t node, uint32_t number, const Sent& sent) {
    if (sent.wrong_reply) wrong("{} has another answer than its target gave", name(node, number));
    if (sent.size < WITNESS_NAMED) return;
    for (size_t hop = 0; hop <= sent.hops; ++hop) {
      const auto& here = ran(node, number, hop);
      if (here.times == 0) {
        if (is_lost_with_killed(node, sent, hop)) return;
        return wrong("{} was answered and did not run at hop {}", name(node, number), hop);
      }
      if (here.first->status != TC_OK) wrong("{} was answered and failed at hop {}", name(node, number), hop);
      if ((here.first->action & WITNESS_INJECTS) != 0) return;
    }
    if (sent.then == WITNESS_FAILS) wrong("{} was answered and ought to have failed", name(node, number));
  }
  // A node that was killed may not have completed the record.
  bool is_lost_with_killed(size_t node, const Sent& sent, size_t hop) const {
    const size_t at = hop == 0 ? log(node).endpoint[sent.endpoint].peer : sent.route[hop - 1] & WITNESS_NODE;
    return std::ranges::any_of(std::span(log(at).life).first(log(at).lives), &Life::killed);
  }

  bool has_cause(size_t node, uint32_t number, const Sent& sent, const EndpointLife& endpoint) {
    bool ended = endpoint.ending != 0 || life(node, sent.incarnation).ending != 0 || may_lose(node, endpoint);
    bool little = little_memory(node) || little_memory(endpoint.peer);
    bool too_large = false;
    for (size_t hop = 0; hop < sent.hops; ++hop) {
      ended = ended || has_ended(sent.route[hop] & WITNESS_NODE);
      little = little || little_memory(sent.route[hop] & WITNESS_NODE);
      too_large = too_large || is_too_large(sent, sent.route[hop] & WITNESS_NODE);
    }
    switch (sent.status) {
      case TC_ERR_IFUNC: {
        if (sent.size < WITNESS_NAMED) return false;
        for (size_t hop = 0; hop <= sent.hops; ++hop) {
          const auto& here = ran(node, number, hop);
          if (here.times == 0) continue;
          if (sent.code == WITNESS_CANNOT_GO_ON + here.first->status && here.first->status != TC_OK) return true;
          if (sent.code == WITNESS_FAILED && sent.then == WITNESS_FAILS && hop == sent.hops) return true;
        }
        return false;
      }
      case TC_ERR_TIMEOUT: return sent.deadline_ms != 0;
      case TC_ERR_DISCONNECTED:
      case TC_ERR_CLOSED: return ended || little;
      case TC_ERR_TOO_LARGE:
        return too_large || (sent.then == WITNESS_REPLIES && sent.reply_size > log(node).limits.max_message);
      // A node that ends in the middle of an encrypted handshake looks like one that has no room.
      case TC_ERR_LIMIT: return ended || little;
      case TC_ERR_NO_MEMORY: return little;
      default: return false;
    }
  }

  // ---- Flushes

  void check_flushes(size_t node) {
    std::vector<std::vector<uint32_t>> numbers(log(node).endpoints);
    for (uint32_t number = 0; number < messages(node); ++number)
      if (const auto& sent = log(node).sent[number]; sent.state == State::accepted && sent.size >= WITNESS_NAMED)
        numbers[sent.endpoint].push_back(number);
    std::vector<size_t> checked(numbers.size());
    std::array<uint64_t, most_nodes> told{};  // when a flush said that something failed, by any endpoint to that node
    for (const auto& flush : std::span(log(node).flush).first(std::min<size_t>(log(node).flushes, most_flushes))) {
      const auto peer = log(node).endpoint[flush.endpoint].peer;
      if (flush.ended != 0 && flush.status != TC_OK && flush.status != TC_ERR_TIMEOUT) told[peer] = flush.ended;
      if (flush.status == TC_ERR_TIMEOUT && flush.must_end)
        wrong("node {}'s flush of endpoint {}, at {}, has not ended in time", node, flush.endpoint, flush.began);
      if (flush.ended == 0 || flush.status != TC_OK) continue;
      auto& at = checked[flush.endpoint];
      for (; at < numbers[flush.endpoint].size() && numbers[flush.endpoint][at] < flush.before; ++at)
        check_flush(node, numbers[flush.endpoint][at], flush, told[peer]);
    }
  }

  void check_flush(size_t node, uint32_t number, const Flushed& flush, uint64_t told) {
    const auto& sent = log(node).sent[number];
    const auto& first = ran(node, number, 0);
    if (first.times != 0 && first.first->seq < flush.ended) return;
    if (first.times == 0 && is_call(sent.way) && (sent.told == 0 || sent.status != TC_OK)) return;
    if (first.times == 0 && told > sent.returned && little_memory(node, sent)) return;  // it was refused
    wrong("{} had not run when a flush said that all had", name(node, number));
  }

  // ---- Messages that are too small for a name are counted

  void count_tiny(size_t node, const Sent& sent, const EndpointLife& endpoint) {
    if (sent.state == State::refused) return;
    auto& tiny = tiny_[endpoint.peer][sent.size == 0 ? 0 : node][sent.size == 0];
    ++tiny.sent;
    const bool told = is_call(sent.way) && (sent.status != TC_OK || sent.deadline_ms != 0);
    if (sent.state == State::accepted && !told && !may_lose(node, endpoint)) ++tiny.surely_sent;
  }

  void check_tiny() {
    for (size_t node = 0; node < nodes_; ++node)
      for (size_t source = 0; source < most_nodes; ++source)
        for (const bool empty : {false, true}) {
          const auto& tiny = tiny_[node][source][empty];
          if (tiny.ran > tiny.sent)
            wrong("node {} ran {} messages of less than 8 bytes when {} were sent to it", node, tiny.ran, tiny.sent);
          if (tiny.ran < tiny.surely_sent && !is_lost_with_killed(node))
            missing("node {} ran {} messages of less than 8 bytes when at least {} were accepted", node, tiny.ran,
                    tiny.surely_sent);
        }
  }
  bool is_lost_with_killed(size_t node) const {
    return std::ranges::any_of(std::span(log(node).life).first(log(node).lives), &Life::killed);
  }

  static constexpr size_t hops_ = WITNESS_MOST_HOPS + 2;
  const Journal& journal_;
  const size_t nodes_;
  Findings found_;
  std::array<std::vector<Ran>, most_nodes> ran_;
  Tiny tiny_[most_nodes][most_nodes][2];  // of a node, by source, empty or not
};

}  // namespace

Findings check(const Journal& journal, size_t nodes) { return Checker(journal, nodes).run(); }

}  // namespace tc::property
