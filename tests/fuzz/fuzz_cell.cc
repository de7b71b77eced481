// SPDX-License-Identifier: Apache-2.0
//
// A cell that was taken over, at the other end of its node's rings: it sends messages at any moment, whole and in
// parts, and writes over both rings. The node begins calls, answers and asks meanwhile. The oracles: each event is one
// that was due, by a second account that is kept here; no message is longer than allowed; where nobody wrote over the
// rings, both sides get what the other one sent; and no receive() goes on for ever.
//
// The input is a script, as in fuzz_receiver.cc.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "cell/conversation.h"
#include "cell/packets.h"
#include "read_frames.h"
#include "wire/abi_names.h"

namespace {

using namespace tc;        // NOLINT
using namespace tc::cell;  // NOLINT
using fuzz::expect;
using transport::RingMemory;
using Side = RingMemory::Side;

constexpr size_t ring_bytes = transport::min_ring_bytes;
constexpr size_t message_bytes = 16 * 1024;  // longer than a ring

struct Sent {
  uint8_t kind;
  uint32_t number;
  Bytes body;
};

bool is(const Channel::Message& message, const Sent& sent) {
  return message.kind == sent.kind && message.number == sent.number && std::ranges::equal(message.body, sent.body);
}

// What a cell may say now, told in another way than in Conversation.
struct Account {
  bool greeted = false;
  size_t ended = 0, begun = 0;  // calls
  size_t asked = 0, answered = 0;
  size_t replies_due = 0, mapped_due = 0, resolved_due = 0;

  void begin(bool wants_reply) {
    ++begun;
    replies_due = wants_reply ? 1 : 0;
    answered = asked;
  }
  void expect_call() const { expect(greeted && begun == ended + 1 && asked == answered); }
  void on(const Ready& ready) {
    expect(!greeted && ready.functions.size() == std::size(abi_names::functions));
    expect(ready.runtime.size() == std::size(abi_names::compiler_runtime));
    greeted = true;
  }
  void on(const Reply&) {
    expect_call();
    expect(replies_due-- == 1);
  }
  void on(const Log& log) const {
    expect_call();
    expect(log.level <= 3);
  }
  void on(const Ask&) {
    expect_call();
    ++asked;
  }
  void on(const Ended&) {
    expect_call();
    ++ended;
  }
  void on(const Mapped&) { expect(greeted && mapped_due-- != 0); }
  void on(const Resolved&) { expect(greeted && resolved_due-- != 0); }
};

struct Ends {
  RingMemory node, cell;
  std::array<Fd, 2> sockets;
  transport::RingView to_node, to_cell;
};

Ends make_ends() {
  auto node = RingMemory::create(ring_bytes).value();
  auto cell = RingMemory::adopt(Fd(::dup(node.descriptor().get())), ring_bytes).value();
  const auto to_node = cell.written_by(Side::receiver), to_cell = cell.written_by(Side::creator);
  return {std::move(node), std::move(cell), socket_pair().value(), to_node, to_cell};
}

class Play {
 public:
  explicit Play(ByteView script) : Play(script, make_ends()) {}

  void run() {
    while (script_.ok() && script_.remaining() != 0 && !is_broken_) {
      step();
      turn();
    }
    while (!is_broken_ && something_must_come()) turn();
  }

 private:
  Play(ByteView script, Ends ends)
      : script_(script),
        sockets_(std::move(ends.sockets)),
        to_node_(ends.to_node),
        to_cell_(ends.to_cell),
        node_(std::move(ends.node), Side::creator, sockets_[0].get(), message_bytes),
        cell_(std::move(ends.cell), Side::receiver, sockets_[1].get(), message_bytes) {}

  void turn() {
    (void)node_.progress();
    (void)cell_.progress();
    node_listens();
    cell_listens();
  }
  bool something_must_come() const {
    return (to_node_is_good_ && !to_node_sent_.empty()) || (to_cell_is_good_ && !to_cell_sent_.empty());
  }

  Bytes some() {
    const auto view = script_.bytes(std::min<size_t>(script_.u8(), script_.remaining()));
    return {view.begin(), view.end()};
  }
  // Up to what goes in several parts, and a little more than a node takes.
  Bytes many() {
    auto bytes = some();
    bytes.resize(bytes.size() + script_.u8() * size_t{68}, script_.remaining() % 2 != 0 ? std::byte{1} : std::byte{});
    return bytes;
  }
  uint32_t number() {
    const auto byte = script_.u8();
    return byte < 250 ? talk_.call_number() : byte;
  }

  void step() {
    const auto what = script_.u8();
    switch (what % 16) {
      case 0: return greet();
      case 1: return say(static_cast<ToNode>(1 + what / 16 % 9), some());
      case 2: return say(ToNode::reply, many());
      case 3: return say_head(ToNode::log, append_log, Log{script_.u8(), "a line"});
      case 4: return say_head(ToNode::ask, append_ask_head, Ask{static_cast<AskKind>(script_.u8() % 6), 3, "hop"});
      case 5: return say_head(ToNode::ended, append_ended, Ended{.failed = true, .message = "words"});
      case 6: return say_head(ToNode::mapped, append_mapped, Mapped{.name = "board"});
      case 7: return say_head(ToNode::resolved, append_resolved, Resolved{1});
      case 8: return say_part();
      case 9: return write_over(to_node_, to_node_is_good_);
      case 10: return write_over(to_cell_, to_cell_is_good_);
      case 11: return begin();
      case 12: return answer();
      case 13: return await();
      case 14: return fill();
      default: return;
    }
  }

  // ---- The cell speaks

  void say(ToNode kind, Bytes body) { say(kind, number(), std::move(body)); }
  void say(ToNode kind, uint32_t number, Bytes body) {
    cell_.send(static_cast<uint8_t>(kind), number, body);
    to_node_sent_.push_back({static_cast<uint8_t>(kind), number, std::move(body)});
  }
  template <class T>
  void say_head(ToNode kind, void (*append)(Bytes&, const T&), const T& message) {
    Bytes out;
    append(out, message);
    say(kind, std::move(out));
  }
  void greet() {
    Bytes out;
    append_ready(out, {.functions = std::vector<uint64_t>(std::size(abi_names::functions), 1),
                       .runtime = std::vector<uint64_t>(std::size(abi_names::compiler_runtime), 1)});
    say(ToNode::ready, 0, std::move(out));
  }
  void say_part() {
    to_node_is_good_ = false;
    const auto call = script_.u8();
    cell_.send(kind_part, call, some());
  }
  static void write_header(const transport::RingView& ring, uint32_t place, uint64_t word) {
    transport::store_header(ring.data + transport::ring_start + place * size_t{16} % (ring.bytes - 16), word);
  }
  // The ring's bytes, or how far its reader says that it is.
  void write_over(const transport::RingView& ring, bool& is_good) {
    is_good = false;
    const auto how = script_.u8();
    if (how == 0) return std::atomic_ref(ring.control->consumed).store(script_.u64());
    if (how == 1) return std::atomic_ref(ring.control->sleeping).store(script_.u8());
    const auto place = script_.u8();
    if (how % 2 == 0) return write_header(ring, place, script_.u64());
    const uint32_t length = script_.u8();
    const uint32_t call = number();
    write_header(ring, place, wire::encode(static_cast<wire::Kind>(how / 2 % 16), 0, call, length));
  }
  // The whole ring with one frame again and again, and a pad at its end that leads to the first one.
  void fill() {
    to_node_is_good_ = false;
    const auto kind = static_cast<wire::Kind>(script_.u8() % 16);
    const uint32_t length = script_.u16() % 1024;
    const uint32_t call = number();
    uint64_t at = transport::ring_start;
    for (; at + wire::stride(length) <= ring_bytes - wire::header_bytes; at += wire::stride(length))
      transport::store_header(to_node_.data + at, wire::encode(kind, 0, call, length));
    if (at + wire::header_bytes > ring_bytes) return;
    const auto rest = static_cast<uint32_t>(to_node_.to_next_lap(at) - wire::header_bytes);
    transport::store_header(to_node_.data + at, wire::encode(wire::Kind::pad, 0, 0, rest));
  }

  // ---- The node speaks

  void tell(ToCell kind, Bytes head, Bytes tail = {}) {
    node_.send(static_cast<uint8_t>(kind), talk_.call_number(), head, tail);
    head.insert(head.end(), tail.begin(), tail.end());
    to_cell_sent_.push_back({static_cast<uint8_t>(kind), talk_.call_number(), std::move(head)});
  }
  void begin() {
    if (!talk_.is_idle()) return;
    const bool wants_reply = script_.u8() % 2 != 0;
    account_.begin(wants_reply);
    expect(talk_.begin(wants_reply) == account_.begun);
    Bytes head;
    append_run_head(head, {.wants_reply = wants_reply});
    auto payload = many();
    payload.resize(std::min(payload.size(), message_bytes - run_head_bytes));
    tell(ToCell::run, std::move(head), std::move(payload));
  }
  void answer() {
    const bool replies = script_.u8() % 2 != 0;
    const bool was_asked = account_.asked != account_.answered;
    expect(talk_.answer(replies) == was_asked);
    if (!was_asked) return;
    account_.answered = account_.asked;
    if (replies) account_.replies_due = 0;
    Bytes head;
    append_answer_head(head, {.first = replies ? 1u : 0u});
    tell(ToCell::answer, std::move(head), some());
  }
  void await() {
    if (script_.u8() % 2 != 0) {
      talk_.await_mapped();
      ++account_.mapped_due;
    } else {
      talk_.await_resolved();
      ++account_.resolved_due;
      Bytes body;
      append_resolve(body, {.symbol = "cos"});
      tell(ToCell::resolve, std::move(body));
    }
  }

  // ---- Both listen

  // As many messages as a node takes in one poll: there may be more for ever.
  void node_listens() {
    for (int messages = 0; messages < 64; ++messages) {
      const auto message = node_.receive();
      is_broken_ = node_.broken().has_value();
      if (!message) return;
      expect(message->body.size() <= message_bytes);
      if (to_node_is_good_) expect(is(*message, to_node_sent_.front()));
      if (!to_node_sent_.empty()) to_node_sent_.pop_front();
      auto event = talk_.read(*message);
      is_broken_ = !event.has_value();
      if (is_broken_) return expect(!event.error().message.empty());
      std::visit([this](const auto& what) { account_.on(what); }, *event);
      expect(talk_.is_running() == (account_.begun != account_.ended) && talk_.is_starting() == !account_.greeted);
    }
  }
  void cell_listens() {
    for (int messages = 0; messages < 64; ++messages) {
      const auto message = cell_.receive();
      if (!message) return;
      if (to_cell_is_good_) expect(is(*message, to_cell_sent_.front()));
      if (!to_cell_sent_.empty()) to_cell_sent_.pop_front();
    }
  }

  Reader script_;
  std::array<Fd, 2> sockets_;
  transport::RingView to_node_, to_cell_;
  Channel node_, cell_;
  Conversation talk_;
  Account account_;
  std::deque<Sent> to_node_sent_, to_cell_sent_;
  bool to_node_is_good_ = true, to_cell_is_good_ = true;  // nobody wrote over that ring
  bool is_broken_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Play({reinterpret_cast<const std::byte*>(data), size}).run();
  return 0;
}
