// SPDX-License-Identifier: Apache-2.0
#include "cell/protocol.h"

#include <bit>

namespace tc::cell {

namespace {

// Stops a list of libraries, or of addresses, that takes memory without bound.
constexpr size_t most_libraries = 256;
constexpr size_t most_addresses = 4096;
constexpr uint32_t max_alignment = 4096;

// One way to write each value: what is neither 0 nor 1 is malformed.
bool flag(Reader& in) noexcept {
  const uint8_t value = in.u8();
  if (value > 1) in.refuse();
  return value != 0;
}

Status check_packet(Reader& in, Packet kind, std::string_view what) {
  if (const auto found = in.u8(); found != static_cast<uint8_t>(kind))
    return fail(TC_ERR_MALFORMED, "{}: its first byte is {} when it should be {}", what, found,
                static_cast<unsigned>(kind));
  return {};
}

void append_addresses(Bytes& out, const std::vector<uint64_t>& addresses) {
  Writer writer(out);
  writer.u32(static_cast<uint32_t>(addresses.size()));
  for (const auto address : addresses) writer.u64(address);
}

std::vector<uint64_t> read_addresses(Reader& in) {
  const uint32_t count = in.u32();
  if (count > most_addresses || count * sizeof(uint64_t) > in.remaining()) {
    in.refuse();
    return {};
  }
  std::vector<uint64_t> addresses(count);
  for (auto& address : addresses) address = in.u64();
  return addresses;
}

}  // namespace

// ---- Packets

Bytes encode_start(const Start& start) {
  Bytes out;
  Writer writer(out);
  writer.u8(static_cast<uint8_t>(Packet::start)).u32(protocol_version).u32(start.parent);
  writer.u32(start.node_id).u32(start.node_count).u32(start.ring_bytes);
  writer.u64(start.message_bytes).u64(start.memory_bytes);
  writer.u64(start.code_address).u64(start.code_bytes).u64(start.data_address).u64(start.data_bytes);
  writer.u16(static_cast<uint16_t>(start.libraries.size()));
  for (const auto& library : start.libraries) writer.str16(library);
  return out;
}

Result<Start> decode_start(ByteView packet) {
  Reader in(packet);
  TC_CHECK(check_packet(in, Packet::start, "start of a cell"));
  if (const auto version = in.u32(); in.ok() && version != protocol_version)
    return fail(TC_ERR_VERSION, "the node speaks version {} of the protocol of cells, and this cell version {}",
                version, protocol_version);
  Start start;
  start.parent = in.u32();
  start.node_id = in.u32();
  start.node_count = in.u32();
  start.ring_bytes = in.u32();
  start.message_bytes = in.u64();
  start.memory_bytes = in.u64();
  start.code_address = in.u64();
  start.code_bytes = in.u64();
  start.data_address = in.u64();
  start.data_bytes = in.u64();
  const size_t libraries = in.u16();
  if (libraries > most_libraries) in.refuse();
  for (size_t i = 0; i < libraries && in.ok(); ++i) start.libraries.emplace_back(in.str16());
  TC_CHECK(in.finish_exactly("start of a cell"));
  return start;
}

Bytes encode_map(const Map& map) {
  Bytes out;
  Writer(out).u8(static_cast<uint8_t>(Packet::map)).u64(map.size).u8(map.writable ? 1 : 0).str16(map.name);
  return out;
}

Result<Map> decode_map(ByteView packet) {
  Reader in(packet);
  TC_CHECK(check_packet(in, Packet::map, "data for a cell"));
  Map map;
  map.size = in.u64();
  map.writable = flag(in);
  map.name = in.str16();
  TC_CHECK(in.finish_exactly("data for a cell"));
  return map;
}

// ---- Frames from the node

void append_run_head(Bytes& out, const Run& run) {
  const size_t begin = out.size();
  Writer(out)
      .u64(run.entry)
      .u64(run.frames)
      .u32(run.alignment)
      .u8(run.wants_reply ? 1 : 0)
      .u8(run.forgets_data ? 1 : 0)
      .u8(run.has_target_args ? 1 : 0);
  out.resize(begin + run_head_bytes);
}

Result<Run> decode_run(ByteView body) {
  Reader in(body);
  Run run;
  run.entry = in.u64();
  run.frames = in.u64();
  run.alignment = in.u32();
  run.wants_reply = flag(in);
  run.forgets_data = flag(in);
  run.has_target_args = flag(in);
  if (in.u8() != 0 || in.u64() != 0) in.refuse();  // up to run_head_bytes
  run.payload = in.rest();
  TC_CHECK(in.finish("call for a cell"));
  if (run.alignment > max_alignment || !std::has_single_bit(run.alignment))
    return fail(TC_ERR_MALFORMED, "call for a cell: its payload is to be aligned to {} bytes", run.alignment);
  return run;
}

void append_answer_head(Bytes& out, const Answer& answer) {
  Writer(out).u32(static_cast<uint32_t>(answer.status)).u64(answer.first).u64(answer.second);
}

Result<Answer> decode_answer(ByteView body) {
  Reader in(body);
  Answer answer;
  answer.status = status_from_wire(in.u32());
  answer.first = in.u64();
  answer.second = in.u64();
  answer.bytes = in.rest();
  TC_CHECK(in.finish("answer for a cell"));
  return answer;
}

void append_resolve(Bytes& out, const Resolve& resolve) { Writer(out).str16(resolve.library).str16(resolve.symbol); }

Result<Resolve> decode_resolve(ByteView body) {
  Reader in(body);
  Resolve resolve;
  resolve.library = in.str16();
  resolve.symbol = in.str16();
  TC_CHECK(in.finish_exactly("symbol for a cell"));
  return resolve;
}

// ---- Frames from the cell

void append_ready(Bytes& out, const Ready& ready) {
  append_addresses(out, ready.functions);
  append_addresses(out, ready.runtime);
  Writer(out).str16(ready.lacks);
}

Result<Ready> decode_ready(ByteView body) {
  Reader in(body);
  Ready ready;
  ready.functions = read_addresses(in);
  ready.runtime = read_addresses(in);
  ready.lacks = in.str16();
  TC_CHECK(in.finish_exactly("greeting of a cell"));
  return ready;
}

void append_log(Bytes& out, const Log& log) { Writer(out).u8(log.level).str16(log.text); }

Result<Log> decode_log(ByteView body) {
  Reader in(body);
  Log log;
  log.level = in.u8();
  if (log.level > 3) in.refuse();
  log.text = in.str16();
  TC_CHECK(in.finish_exactly("line of a cell's log"));
  return log;
}

void append_ask_head(Bytes& out, const Ask& ask) {
  Writer(out).u8(static_cast<uint8_t>(ask.kind)).u32(ask.node).str16(ask.name);
}

Result<Ask> decode_ask(ByteView body) {
  Reader in(body);
  Ask ask;
  const uint8_t kind = in.u8();
  if (kind < static_cast<uint8_t>(AskKind::forward) || kind > static_cast<uint8_t>(AskKind::data)) in.refuse();
  ask.kind = static_cast<AskKind>(kind);
  ask.node = in.u32();
  ask.name = in.str16();
  ask.payload = in.rest();
  TC_CHECK(in.finish("what a cell asks"));
  return ask;
}

void append_ended(Bytes& out, const Ended& ended) {
  Writer(out).u8(ended.failed ? 1 : 0).u32(static_cast<uint32_t>(ended.code)).u64(ended.run_ns).str16(ended.message);
}

Result<Ended> decode_ended(ByteView body) {
  Reader in(body);
  Ended ended;
  ended.failed = flag(in);
  ended.code = static_cast<int32_t>(in.u32());
  ended.run_ns = in.u64();
  ended.message = in.str16();
  TC_CHECK(in.finish_exactly("end of a call in a cell"));
  return ended;
}

void append_mapped(Bytes& out, const Mapped& mapped) {
  Writer(out).u32(static_cast<uint32_t>(mapped.status)).str16(mapped.name).str16(mapped.message);
}

Result<Mapped> decode_mapped(ByteView body) {
  Reader in(body);
  Mapped mapped;
  mapped.status = status_from_wire(in.u32());
  mapped.name = in.str16();
  mapped.message = in.str16();
  TC_CHECK(in.finish_exactly("data of a cell"));
  return mapped;
}

void append_resolved(Bytes& out, const Resolved& resolved) { Writer(out).u64(resolved.address); }

Result<Resolved> decode_resolved(ByteView body) {
  Reader in(body);
  Resolved resolved;
  resolved.address = in.u64();
  TC_CHECK(in.finish_exactly("symbol of a cell"));
  return resolved;
}

}  // namespace tc::cell
