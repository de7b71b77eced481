// SPDX-License-Identifier: Apache-2.0
#include "transport/greeting.h"

#include <algorithm>

#include "wire/text.h"

namespace tc::transport {

namespace {

constexpr uint32_t magic = 0x314e4354;  // "TCN1"
enum class GreetingKind : uint8_t { greeting = 1, refusal = 2 };

Bytes encode(GreetingKind kind, ByteView body) {
  Bytes out;
  Writer(out)
      .u32(magic)
      .u8(greeting_version)
      .u8(static_cast<uint8_t>(kind))
      .u16(0)
      .u32(static_cast<uint32_t>(body.size()));
  Writer(out).bytes(body);
  return out;
}

// The beginning of what a program that is no node has sent, for messages: "HTTP/1.1 400 Bad".
std::string shown(ByteView head) {
  std::string text(as_text(head));
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '.');
  return text;
}

}  // namespace

Bytes encode_greeting(const Greeting& greeting) {
  Bytes body;
  Writer w(body);
  w.str8(greeting.transport).u16(static_cast<uint16_t>(greeting.details.size())).bytes(greeting.details);
  w.bytes(greeting.hello);
  return encode(GreetingKind::greeting, body);
}

Bytes encode_refusal(const Error& why) {
  Bytes body;
  Writer(body).u32(static_cast<uint32_t>(why.code)).str16(std::string_view(why.message).substr(0, 4096));
  return encode(GreetingKind::refusal, body);
}

Result<size_t> decode_greeting_head(ByteView head) {
  Reader r(head);
  const uint32_t found = r.u32();
  const uint8_t version = r.u8();
  const auto kind = static_cast<GreetingKind>(r.u8());
  const uint16_t zero = r.u16();
  const uint32_t size = r.u32();
  if (found != magic) return fail(TC_ERR_MALFORMED, "it is no Three-Chains node: it says '{}'", shown(head));
  if (version != greeting_version && kind != GreetingKind::refusal)
    return fail(TC_ERR_VERSION, "its greeting has version {} when ours has {}", version, greeting_version);
  if (zero != 0 || (kind != GreetingKind::greeting && kind != GreetingKind::refusal)) r.refuse();
  TC_CHECK(r.finish_exactly("the head of a greeting"));
  if (size > max_greeting_bytes)
    return fail(TC_ERR_TOO_LARGE, "its greeting is {} bytes when at most {} are taken", size, max_greeting_bytes);
  return size;
}

Result<Greeting> decode_greeting(ByteView message) {
  const auto head = message.first(std::min(message.size(), greeting_head_bytes));
  TC_ASSIGN(const size_t size, decode_greeting_head(head));
  if (message.size() != greeting_head_bytes + size)
    return fail(TC_ERR_MALFORMED, "its greeting is {} bytes when its head says {}",
                message.size() - greeting_head_bytes, size);
  Reader r(message.subspan(greeting_head_bytes));
  if (static_cast<GreetingKind>(head[5]) == GreetingKind::refusal) {
    const auto status = status_from_wire(r.u32());
    const std::string reason = wire::words(r.str16());
    if (status == TC_OK) r.refuse();
    TC_CHECK(r.finish_exactly("a refusal"));
    return fail(Error{status, reason});
  }
  Greeting greeting;
  greeting.transport = r.str8();
  const ByteView details = r.bytes(r.u16());
  greeting.details.assign(details.begin(), details.end());
  const ByteView hello = r.rest();
  greeting.hello.assign(hello.begin(), hello.end());
  if (!wire::visible(greeting.transport)) r.refuse();
  TC_CHECK(r.finish("a greeting"));
  return greeting;
}

}  // namespace tc::transport
