// SPDX-License-Identifier: Apache-2.0
#include "transport/ring/ring_connection.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tc::transport {

namespace {

// So many times as much as frames go round in is there for pieces of large ones. A page of it has memory once it was used.
constexpr size_t room_for_pieces = 32;

// The side that made the memory decides for both.
size_t usual_bytes(const RingMemory& memory) noexcept {
  return std::max(memory.bytes() / room_for_pieces, min_ring_bytes);
}

constexpr RingMemory::Side other(RingMemory::Side side) noexcept {
  return side == RingMemory::Side::creator ? RingMemory::Side::receiver : RingMemory::Side::creator;
}

}  // namespace

bool RingConnection::is_possible() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool RingConnection::barrier() noexcept { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

RingConnection::RingConnection(Hub& hub, Fd socket, std::string address, RingMemory memory)
    : SocketConnection(hub, std::move(socket), std::move(address), {}),
      memory_(std::move(memory)),
      side_(RingMemory::Side::creator),
      out_(hub.flush_list, [this] { ring_doorbell(); }) {}

RingConnection::RingConnection(Hub& hub, SocketStream stream, Origin origin, RingMemory memory)
    : SocketConnection(hub, std::move(stream), std::move(origin)),
      memory_(std::move(memory)),
      side_(RingMemory::Side::receiver),
      out_(hub.flush_list, [this] { ring_doorbell(); }) {}

Result<std::unique_ptr<RingConnection>> RingConnection::connect(Hub& hub, Fd socket, std::string address,
                                                                size_t ring_bytes, ByteView hello) {
  TC_ASSIGN(auto memory, RingMemory::create(std::min(room_for_pieces * ring_bytes, max_ring_bytes)));
  std::unique_ptr<RingConnection> made(
      new RingConnection(hub, std::move(socket), std::move(address), std::move(memory)));
  TC_CHECK(made->start_greeting(hello, made->memory_.descriptor().get()));
  return made;
}

Result<std::unique_ptr<RingConnection>> RingConnection::accept(Hub& hub, SocketStream& stream, const Origin& origin,
                                                               const Greeting& greeting, Fd descriptor) {
  Reader details(greeting.details);
  const size_t ring_bytes = details.u32();
  TC_CHECK(details.finish_exactly("its details about its rings"));
  TC_ASSIGN(auto memory, RingMemory::adopt(std::move(descriptor), ring_bytes));
  std::unique_ptr<RingConnection> made(new RingConnection(hub, std::move(stream), origin, std::move(memory)));
  TC_CHECK(made->start_accepted());
  return made;
}

// How large each ring is.
Bytes RingConnection::our_details() {
  Bytes details;
  Writer(details).u32(static_cast<uint32_t>(memory_.bytes()));
  return details;
}

Status RingConnection::open_streams() {
  memory_.close_descriptor();
  in_.open(memory_.written_by(other(side_)), usual_bytes(memory_));
  out_.open(memory_.written_by(side_), usual_bytes(memory_));
  watch(EPOLLIN | EPOLLRDHUP);
  return {};
}

// What the peer wrote stays readable.
void RingConnection::shut_streams() noexcept { out_.shut(); }

// Doorbells, or the end of the socket.
void RingConnection::on_socket(uint32_t) {
  constexpr int most_bells = 16;  // at a time, should the peer do nothing else
  for (int i = 0; i < most_bells; ++i) {
    char bells[64];
    const auto got = ::recv(stream_.socket().get(), bells, sizeof bells, MSG_DONTWAIT);
    if (got > 0) continue;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    return lose(Error{TC_ERR_DISCONNECTED,
                      got == 0 ? "it closed its socket without disconnecting first" : system_words(errno)});
  }
}

void RingConnection::ring_doorbell() noexcept {
  const char bell = 1;
  (void)!::send(stream_.socket().get(), &bell, sizeof bell, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace tc::transport
