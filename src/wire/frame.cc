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
      .u32(0)
      .bytes(bundle)
      .align(alignment);
}

Result<CodeBody> decode_code(ByteView body) {
  Reader in(body);
  CodeBody code;
  code.head.id = ContentId::from(in.bytes(32));
  code.head.carried = in.u64();
  code.head.bundle_size = in.u32();
  in.skip(4);
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
