// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <algorithm>
#include <cstring>

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

Bytes encode_barrier(uint64_t number) {
  Bytes out;
  Writer(out).u64(number);
  return out;
}

Result<uint64_t> decode_barrier(ByteView body) {
  Reader in(body);
  const uint64_t number = in.u64();
  TC_CHECK(in.finish_exactly("barrier frame"));
  return number;
}

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

}  // namespace tc::wire
