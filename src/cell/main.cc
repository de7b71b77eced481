// SPDX-License-Identifier: Apache-2.0
//
// threechains-cell: the process that a node starts to run ifuncs in (cell_process.h). Its standard input is the socket of the
// node. Until the sandbox is shut, errors go to standard error, where the node reads them.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cell/channel.h"
#include "cell/crash_record.h"
#include "cell/packets.h"
#include "cell/runner.h"
#include "cell/sandbox.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace tc::cell {
namespace {

constexpr int node_socket = STDIN_FILENO;

// The environment of a node may hold secrets.
void wipe_environment() noexcept {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    std::memset(*entry, 0, std::strlen(*entry));
  ::clearenv();
}

// A library that is not there is not there for the code either, which is refused when it is linked.
std::vector<Runner::Library> open_libraries(const std::vector<std::string>& names) {
  std::vector<Runner::Library> libraries;
  for (const auto& name : names) libraries.push_back({name, ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)});
  return libraries;
}

// Those of the library by which C++'s throws: it comes with the first library that is written in C++.
Runner::Unwinder unwinder() {
  void* const library = ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return {};
  const auto function = [&](const char* name) { return reinterpret_cast<void (*)(void*)>(::dlsym(library, name)); };
  const Runner::Unwinder found{function("__register_frame"), function("__deregister_frame")};
  return found.add != nullptr && found.remove != nullptr ? found : Runner::Unwinder();
}

// At the address where the node has it: all that the node links counts on it.
Status map_half(std::string_view what, uint64_t address, uint64_t bytes, int protection, const Fd& descriptor) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const at = ::mmap(wanted, bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor.get(), 0);
  if (at == wanted) return {};
  return fail(TC_ERR_NO_MEMORY, "mapping {} bytes for {} at {}: {}", bytes, what, wanted,
              at == MAP_FAILED ? system_words(errno) : "the kernel chose another address");
}

Status map_code(const Start& start, const Fd& code, const Fd& data) {
  TC_CHECK(map_half("code", start.code_address, start.code_bytes, PROT_READ | PROT_EXEC, code));
  return map_half("the data of code", start.data_address, start.data_bytes, PROT_READ | PROT_WRITE, data);
}

Status serve(uint64_t stack_top) {
  close_descriptors_from(STDERR_FILENO + 1);
  TC_ASSIGN(auto packet, receive_packet(node_socket, true));
  if (!packet || packet->bytes.empty()) return {};  // the node is gone
  TC_ASSIGN(const auto start, decode_start(packet->bytes));
  TC_CHECK(end_with_parent(start.parent));
  auto& [rings, record, code, data] = packet->descriptors;
  TC_ASSIGN(auto crash, CrashMemory::adopt(std::move(record)));
  TC_CHECK(install_crash_handler(crash.record(), stack_top, start.code_address, start.code_bytes));
  TC_ASSIGN(auto memory, transport::RingMemory::adopt(std::move(rings), start.ring_bytes));
  TC_CHECK(map_code(start, code, data));
  if (!Channel::can_sleep()) return fail(TC_ERR_UNSUPPORTED, "this kernel has no membarrier");
  Channel channel(std::move(memory), transport::RingMemory::Side::receiver, node_socket, start.message_bytes);
  auto libraries = open_libraries(start.libraries);
  const auto throwers = unwinder();
  wipe_environment();
  code.reset();
  data.reset();
  crash.close_descriptor();
  TC_ASSIGN(auto lacks, enter_sandbox({.memory_bytes = start.memory_bytes}));
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
  return Runner(start, channel, node_socket, crash.record()->begun_call, std::move(libraries), throwers)
      .serve(std::move(lacks));
}

}  // namespace
}  // namespace tc::cell

int main() {
  const auto stack_top = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 2 * sizeof(uint64_t);
  const auto served = tc::cell::serve(stack_top);
  if (!served) std::fprintf(stderr, "%s\n", served.error().message.c_str());
  std::fflush(stderr);
  ::_exit(served ? 0 : 1);
}
