// SPDX-License-Identifier: Apache-2.0
//
// Any bytes in a slot that the papers' API polls: at most refused, whatever they say about their sizes. Once as they
// are, and once with the checks of the header made right, so that what stands behind the checks is reached as well.
// Code that comes along is read, checked and linked as far as it goes; nothing runs.
#include <spdlog/sinks/null_sink.h>

#include <cstdlib>
#include <cstring>

#include "ucp_ifunc/receiver.h"

namespace {

using namespace tc;
namespace slot = ucp::slot;

void poll(ucp::Receiver& receiver, const Bytes& slot) {
  slot::Header header;
  const auto look = slot::look(slot.data(), slot.size(), header);
  if (look != slot::Look::frame) {
    if (slot::describe(look, header, slot.size()).empty()) std::abort();
    return;
  }
  if (header.length > slot.size() || slot::header_bytes + header.payload_size > slot.size()) std::abort();
  tc::ucp::Receiver::Use use;
  const auto code = receiver.code_for(header, slot.data() + slot::header_bytes, use);
  if (!code && code.error().message.empty()) std::abort();
}

// The fields as the input says, the frame as long as the input, and every check right.
Bytes with_right_checks(Bytes slot) {
  slot::Header header;
  const auto word = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, slot.data() + at, sizeof value);
    return value;
  };
  header.length = static_cast<uint32_t>(slot.size());
  header.flags = static_cast<uint16_t>(word(12) & slot::known_flags);
  header.payload_size = static_cast<uint32_t>(word(16)) % static_cast<uint32_t>(slot.size());
  if ((header.flags & slot::flag_code) == 0) header.payload_size = header.length - slot::header_bytes;
  header.body_check = slot::check_of(ByteView(slot).subspan(slot::header_bytes));
  const size_t code = slot::code_offset(header.payload_size);
  if (code + 16 <= slot.size()) header.id = {word(code), word(code + 8)};
  const auto bytes = slot::encode(header);

  std::memcpy(slot.data(), bytes.data(), bytes.size());
  return slot;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto log = std::make_shared<spdlog::logger>("fuzz", std::make_shared<spdlog::sinks::null_sink_st>());
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  const Bytes slot(bytes, bytes + size);
  ucp::Receiver receiver("", log);
  poll(receiver, slot);
  if (slot.size() >= slot::header_bytes) poll(receiver, with_right_checks(slot));
  return 0;
}
