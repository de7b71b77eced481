// SPDX-License-Identifier: Apache-2.0
//
// Stands in for threechains-cell: a cell that was taken over. Its first library is the name of what it does to its node.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cell/channel.h"
#include "cell/crash_record.h"
#include "cell/packets.h"
#include "wire/abi_names.h"

namespace tc::cell {
namespace {

constexpr int node_socket = STDIN_FILENO;

Bytes greeting() {
  Bytes out;
  append_ready(out, {.functions = std::vector<uint64_t>(std::size(abi_names::functions), 1),
                     .runtime = std::vector<uint64_t>(std::size(abi_names::compiler_runtime), 1)});
  return out;
}

class HostileCell {
 public:
  HostileCell(Channel& channel, std::byte* ring, CrashRecord* record)
      : channel_(channel), ring_(ring), record_(record) {}

  void greet() { send(ToNode::ready, 0, greeting()); }
  void send(ToNode kind, uint32_t call, ByteView body = {}) { channel_.send(static_cast<uint8_t>(kind), call, body); }
  void misbehave(const std::string& how) {
    if (how == "early") return send(ToNode::reply, 1);
    if (how == "short-greeting") return send(ToNode::ready, 0, Bytes(3));
    if (how == "few-functions") return send(ToNode::ready, 0, Bytes(10));
    if (how == "long-frame") return write_header(wire::encode(wire::Kind::call, 0, 0, 0x7fffffff));
    if (how == "empty-parts") return fill_with_empty_parts();
    if (how == "pads") return write_header(wire::encode(wire::Kind::pad, 0, 0, ring_bytes - wire::header_bytes));
    if (how == "record") return forge_record();
    greet();
    if (how == "no-call") send(ToNode::ended, 7, ended());
    if (how == "twice-ready") greet();
    if (how == "unknown-kind") channel_.send(9, 1, {});
    if (how == "mapped") send(ToNode::mapped, 0, Bytes(8));
    if (how == "resolved") send(ToNode::resolved, 0, Bytes(8));
    if (how == "endless-message") send_parts();
    if (how == "bells") ring_bells();
    if (how == "empty-packet") (void)!::send(node_socket, "", 0, MSG_NOSIGNAL);
    if (how == "closed-socket") ::close(node_socket);
    wait_for_call();
    if (how == "other-call") send(ToNode::ended, 99, ended());
    if (how == "two-replies") reply_twice();
    if (how == "reply-while-asking") ask_and_reply();
    if (how == "wrong-log") send(ToNode::log, 1, Bytes(2, std::byte{255}));
  }

  static constexpr uint32_t ring_bytes = 4096;

 private:
  static Bytes ended() {
    Bytes out;
    append_ended(out, {});
    return out;
  }
  void write_header(uint64_t word) { transport::store_header(ring_ + transport::ring_start, word); }
  // The last of them is a pad that leads to the first one, and no writing goes on.
  void fill_with_empty_parts() {
    const auto part = static_cast<wire::Kind>(kind_part);
    constexpr size_t end = ring_bytes - wire::header_bytes;
    transport::store_header(ring_ + end, wire::encode(wire::Kind::pad, 0, 0, wire::header_bytes));
    for (size_t at = end; at > transport::ring_start;) {
      at -= wire::alignment;
      transport::store_header(ring_ + at, wire::encode(part, 0, 0, 0));
    }
  }
  void send_parts() {
    for (int i = 0; i < 1000; ++i) {
      channel_.send(kind_part, 0, Bytes(transport::ring_piece_length(ring_bytes)));
      while (!channel_.is_sent())
        if (!channel_.progress()) ::usleep(10);
    }
  }
  static void ring_bells() {
    for (int i = 0; i < 100'000; ++i) (void)!::write(node_socket, "bell", 4);
  }
  void reply_twice() {
    send(ToNode::reply, 1);
    send(ToNode::reply, 1);
  }
  void ask_and_reply() {
    Bytes ask;
    append_ask_head(ask, {});
    send(ToNode::ask, 1, ask);
    send(ToNode::reply, 1);
  }
  void wait_for_call() {
    while (!channel_.receive()) ::usleep(10);
  }
  void forge_record() {
    greet();
    std::memset(record_, 0xff, sizeof *record_);
    record_->is_complete = 1;
    record_->signal = 9;
    (void)!::kill(::getpid(), 9);
  }

  Channel& channel_;
  std::byte* ring_;
  CrashRecord* record_;
};

}  // namespace
}  // namespace tc::cell

int main() {
  using namespace tc::cell;
  auto packet = receive_packet(node_socket, true);
  if (!packet || !*packet) return 1;
  const auto start = decode_start((*packet)->bytes);
  if (!start || start->ring_bytes != HostileCell::ring_bytes || start->libraries.empty()) return 2;
  auto& [rings, record, code, data] = (*packet)->descriptors;
  auto crash = CrashMemory::adopt(std::move(record));
  auto memory = tc::transport::RingMemory::adopt(std::move(rings), start->ring_bytes);
  if (!crash || !memory || !Channel::can_sleep()) return 3;
  auto* const ring = memory->written_by(tc::transport::RingMemory::Side::receiver).data;
  Channel channel(std::move(*memory), tc::transport::RingMemory::Side::receiver, node_socket, start->message_bytes);
  HostileCell(channel, ring, crash->record()).misbehave(start->libraries.front());
  for (;;) ::pause();
}
