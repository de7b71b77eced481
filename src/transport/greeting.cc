// SPDX-License-Identifier: Apache-2.0
#include "transport/greeting.h"

#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "base/content_id.h"

namespace tc::transport {

namespace {

constexpr uint32_t magic = 0x31574354;  // "TCW1"

}  // namespace

Bytes encode_greeting(const Greeting& greeting) {
  Bytes body;
  Writer w(body);
  w.u16(greeting_version).str8(greeting.ucx_version).u64(greeting.machine).u64(greeting.token);
  w.u32(greeting.batch_bytes).u32(greeting.window_bytes).str16(greeting.listening);
  w.u16(static_cast<uint16_t>(greeting.worker_address.size())).bytes(greeting.worker_address);
  Bytes out;
  Writer(out).u32(magic).u32(static_cast<uint32_t>(body.size())).bytes(body);
  return out;
}

Result<std::optional<Greeting>> decode_greeting(ByteView received) {
  Reader head(received);
  const uint32_t found = head.u32();
  const uint32_t size = head.u32();
  if (received.size() >= 4 && found != magic)
    return fail(TC_ERR_MALFORMED, "the peer greets with {:#x} when a node says {:#x}", found, magic);
  if (!head.ok()) return std::nullopt;
  if (size > max_greeting_bytes)
    return fail(TC_ERR_TOO_LARGE, "the peer's greeting is {} bytes when at most {} are taken", size,
                max_greeting_bytes);
  if (head.remaining() < size) return std::nullopt;
  if (head.remaining() > size)
    return fail(TC_ERR_MALFORMED, "{} bytes follow the peer's greeting when none may", head.remaining() - size);
  Reader r(head.bytes(size));
  if (const uint16_t version = r.u16(); r.ok() && version != greeting_version)
    return fail(TC_ERR_VERSION, "the peer's transport has version {}, ours has {}", version, greeting_version);
  Greeting greeting;
  greeting.ucx_version = r.str8();
  greeting.machine = r.u64();
  greeting.token = r.u64();
  greeting.batch_bytes = r.u32();
  greeting.window_bytes = r.u32();
  greeting.listening = r.str16();
  const ByteView address = r.bytes(r.u16());
  greeting.worker_address.assign(address.begin(), address.end());
  if (address.empty() || greeting.batch_bytes < 256 || greeting.window_bytes < greeting.batch_bytes) r.refuse();
  TC_CHECK(r.finish_exactly("the peer's greeting"));
  return greeting;
}

uint64_t this_machine() {
  Bytes identity;
  Writer w(identity);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;  // has no size: not for read_file()
  w.bytes(as_bytes(boot));
  for (const char* const path : {"/proc/self/ns/pid", "/proc/self/ns/ipc", "/proc/self/ns/mnt"}) {
    struct stat s{};
    if (stat(path, &s) == 0) w.u64(s.st_ino);
  }
  uint64_t value;
  std::memcpy(&value, ContentId::of(identity).bytes.data(), sizeof value);
  return value;
}

}  // namespace tc::transport
