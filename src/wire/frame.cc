// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/text.h"

namespace tc::wire {

void append_code(Bytes& out, const CodeHead& head, ByteView bundle) {
  Writer w(out);
  w.bytes(head.id.bytes)
      .u64(head.carried)
      .u32(static_cast<uint32_t>(bundle.size()))
      .u32(static_cast<uint32_t>(head.chain.keys().size()))
      .bytes(std::as_bytes(std::span(head.chain.keys())))
      .bytes(bundle)
      .align(alignment);
}

Bytes with_chain(ByteView section, const Chain& chain) {
  static_assert(sizeof(Chain::Key) % alignment == 0, "the padding behind the bundle stays as it is");
  constexpr size_t before_count = code_head_bytes - sizeof(uint32_t);
  Bytes out;
  Writer(out)
      .bytes(section.first(before_count))
      .u32(static_cast<uint32_t>(chain.keys().size()))
      .bytes(std::as_bytes(std::span(chain.keys())))
      .bytes(section.subspan(code_head_bytes));
  return out;
}

namespace {

Result<Chain> read_chain(Reader& in) {
  const auto count = in.u32();
  if (count > Chain::most)
    return fail(TC_ERR_MALFORMED, "code frame: a call on behalf of {} others when at most {} may be named", count,
                Chain::most);
  std::vector<Chain::Key> keys(count);
  for (auto& key : keys)
    if (const auto bytes = in.bytes(key.size()); bytes.size() == key.size()) std::ranges::copy(bytes, key.begin());
  return Chain(std::move(keys));
}

}  // namespace

Result<CodeBody> decode_code(ByteView body) {
  Reader in(body);
  CodeBody code;
  code.head.id = ContentId::from(in.bytes(32));
  code.head.carried = in.u64();
  code.head.bundle_size = in.u32();
  TC_ASSIGN(code.head.chain, read_chain(in));
  code.bundle = in.bytes(code.head.bundle_size);
  in.skip((alignment - in.position() % alignment) % alignment);
  TC_CHECK(in.finish("code frame"));
  code.payload = in.rest();
  return code;
}

Bytes encode_need(const Need& need) {
  Bytes out;
  Writer(out).bytes(need.id.bytes).str8(need.triple);
  return out;
}

Result<Need> decode_need(ByteView body) {
  Reader in(body);
  Need need;
  need.id = ContentId::from(in.bytes(32));
  need.triple = in.str8();
  TC_CHECK(in.finish_exactly("need frame"));
  if (!visible(need.triple)) return fail(TC_ERR_MALFORMED, "need frame: its triple is not printable");
  return need;
}

Bytes encode_reply_head(const Reply& reply) {
  Bytes out;
  out.reserve(32 + reply.message.size());
  Writer(out)
      .u64(reply.token)
      .u32(static_cast<uint32_t>(reply.status))
      .u32(static_cast<uint32_t>(reply.code))
      .u32(reply.node_id)
      .str16(reply.message)
      .align(alignment);
  return out;
}

Bytes encode_reply(const Reply& reply) {
  auto out = encode_reply_head(reply);
  Writer(out).bytes(reply.bytes);
  return out;
}

Result<Reply> decode_reply(ByteView body) {
  Reader in(body);
  Reply reply;
  reply.token = in.u64();
  reply.status = status_from_wire(in.u32());
  reply.code = static_cast<int32_t>(in.u32());
  reply.node_id = in.u32();
  reply.message = words(in.str16());
  in.skip((alignment - in.position() % alignment) % alignment);
  TC_CHECK(in.finish("reply frame"));
  reply.bytes = in.rest();
  return reply;
}

namespace {

Bytes encode_number(uint64_t number) {
  Bytes out;
  Writer(out).u64(number);
  return out;
}

Result<uint64_t> decode_number(ByteView body, const char* what) {
  Reader in(body);
  const uint64_t number = in.u64();
  TC_CHECK(in.finish_exactly(what));
  return number;
}

}  // namespace

Bytes encode_barrier(uint64_t number) { return encode_number(number); }
Result<uint64_t> decode_barrier(ByteView body) { return decode_number(body, "barrier frame"); }

Bytes encode_cancel(uint64_t token) { return encode_number(token); }
Result<uint64_t> decode_cancel(ByteView body) { return decode_number(body, "cancel frame"); }

Bytes encode_disconnect(const Disconnect& disconnect) {
  Bytes out;
  Writer(out).u32(static_cast<uint32_t>(disconnect.status)).str16(disconnect.reason);
  return out;
}

Result<Disconnect> decode_disconnect(ByteView body) {
  Reader in(body);
  Disconnect disconnect;
  disconnect.status = status_from_wire(in.u32());
  disconnect.reason = words(in.str16());
  TC_CHECK(in.finish_exactly("disconnect frame"));
  return disconnect;
}

Bytes make_frame(Kind kind, uint8_t flags, uint32_t number, ByteView body) {
  Bytes out;
  out.reserve(header_bytes + body.size());
  Writer(out).u64(encode(kind, flags, number, static_cast<uint32_t>(body.size()))).bytes(body);
  return out;
}

// ---- Return addresses

PackedReturnAddress::PackedReturnAddress(ReturnAddress return_address) noexcept : value_(std::move(return_address)) {
  constexpr size_t head_bytes = sizeof value_.instance + sizeof value_.node_id + 1;
  const auto address = static_cast<uint8_t>(std::min<size_t>(value_.address.size(), UINT8_MAX));
  size_ = (head_bytes + address + alignment - 1) & ~(alignment - 1);
  std::memset(bytes_.data(), 0, size_);
  std::byte* const at = bytes_.data();
  std::memcpy(at, &value_.instance, sizeof value_.instance);
  std::memcpy(at + sizeof value_.instance, &value_.node_id, sizeof value_.node_id);
  std::memcpy(at + head_bytes - 1, &address, sizeof address);
  std::memcpy(at + head_bytes, value_.address.data(), address);
}

Result<size_t> PackedReturnAddress::take_another(ByteView body) {
  std::array<std::byte, max_return_address_bytes>
      copy;  // a copy, because the sender may change the memory after the check
  const auto copied = std::min(body.size(), copy.size());
  std::memcpy(copy.data(), body.data(), copied);
  size_t size = 0;
  TC_ASSIGN(auto return_address, decode_return_address({copy.data(), copied}, size));
  *this = PackedReturnAddress(std::move(return_address));
  return size;
}

Bytes encode_return_address(const ReturnAddress& return_address) {
  const PackedReturnAddress packed(return_address);
  return {packed.bytes().begin(), packed.bytes().end()};
}

Result<ReturnAddress> decode_return_address(ByteView body, size_t& size) {
  Reader in(body);
  ReturnAddress return_address;
  return_address.instance = in.u64();
  return_address.node_id = in.u32();
  return_address.address = in.str8();
  in.skip((alignment - in.position() % alignment) % alignment);
  TC_CHECK(in.finish("return address of a call"));
  if (!visible(return_address.address))
    return fail(TC_ERR_MALFORMED, "return address of a call: its address is not printable");
  size = in.position();
  return return_address;
}

// ---- Greetings

Bytes encode_hello(const Hello& hello) {
  Bytes out;
  Writer w(out);
  // The protocol version comes first in every version, so that any two versions can tell that they differ.
  w.u32(hello.protocol).u8(hello.abi).u64(hello.instance).u32(hello.node_id).u64(hello.max_message);
  w.str8(hello.name).str8(hello.address).str8(hello.triple).str8(hello.cpu).str16(hello.last_words);
  return out;
}

Result<Hello> decode_hello(ByteView body) {
  Reader in(body);
  Hello hello;
  hello.protocol = in.u32();
  if (in.ok() && hello.protocol != protocol_version)
    return fail(TC_ERR_VERSION, "the peer speaks protocol version {} when this build speaks version {}", hello.protocol,
                protocol_version);
  hello.abi = in.u8();
  hello.instance = in.u64();
  hello.node_id = in.u32();
  hello.max_message = in.u64();
  hello.name = in.str8();
  hello.address = in.str8();
  hello.triple = in.str8();
  hello.cpu = in.str8();
  hello.last_words = in.str16();
  TC_CHECK(in.finish_exactly("greeting of a node"));
  if (hello.last_words.size() > most_last_words)
    return fail(TC_ERR_TOO_LARGE, "greeting of a node: its last words are {} bytes when {} are allowed",
                hello.last_words.size(), most_last_words);
  for (const auto& label : {hello.name, hello.address, hello.triple, hello.cpu, hello.last_words})
    if (!printable(label))
      return fail(TC_ERR_MALFORMED, "greeting of a node: a label holds bytes that cannot be printed");
  return hello;
}

}  // namespace tc::wire
