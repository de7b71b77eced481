// SPDX-License-Identifier: Apache-2.0
#include "floor/floor.h"

namespace tc::bench {

namespace {
constexpr auto no_socket = "-";

void increment(const uint8_t*, uint64_t* counter) { ++*counter; }
void do_nothing(const uint8_t*, uint64_t*) {}

}  // namespace

// Not in a file that calls through it: there the compiler would see which function is called.
constinit const RawTable raw_table{do_nothing, increment, do_nothing, do_nothing};

Result<Floor> Floor::offer(bool by_network) {
  Floor floor;
  TC_ASSIGN(floor.memory, RawMemory::create());
  if (by_network) {
    TC_ASSIGN(floor.socket, RawSocket::listen());
  }
  return floor;
}

std::string Floor::addresses() const {
  return memory->address() + " " + (socket ? socket->address() : std::string(no_socket));
}

Result<Floor> Floor::open(const std::string& memory_address, const std::string& socket_address) {
  Floor floor;
  TC_ASSIGN(floor.memory, RawMemory::open(memory_address));
  if (socket_address != no_socket) {
    TC_ASSIGN(floor.socket, RawSocket::open(socket_address));
  }
  return floor;
}

Status Floor::accept() { return socket ? socket->accept() : Status{}; }

}  // namespace tc::bench
