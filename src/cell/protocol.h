// SPDX-License-Identifier: Apache-2.0
//
// What a node and its cell say to each other. A cell is a process of its own that runs ifuncs for one node.
//
// Frames go by two rings in shared memory (transport/ring), as between nodes. A frame's kind is one of the messages below,
// and its number is that of the call, so that a small message is one cache line. A message that is longer than the ring takes
// goes in parts (channel.h).
//
//     node -> cell    run        entry, target args, alignment; the payload
//                     answer     to what the cell has asked: a status, two numbers, bytes
//                     resolve    a library and a symbol
//                     end        leave
//     cell -> node    ready      the addresses of the ABI's functions, and what the kernel lacks
//                     reply      the answer of the call
//                     log        a line of the call
//                     ask        forward, forward_as, inject, data: the call waits for the answer
//                     ended      the call has returned
//                     mapped     data of that name is there, or why not
//                     resolved   the address of the symbol
//
// Beside the rings there is a socket of packets. A packet of one byte wakes the other side, which may sleep. What comes with
// descriptors is a packet, too: `start` comes first and has what a cell is made of, `map` brings named data.
//
// A node trusts nothing of what a cell writes: it copies before it reads, and every decode function checks. The cell trusts its
// node, and uses the same functions.
//
// Threads: any; plain values. What has views is decoded in place, and points into the bytes that it was decoded from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tc::cell {

// Node and cell come from one build; another number means that they do not.
inline constexpr uint32_t protocol_version = 1;

enum class ToCell : uint8_t { run = 1, answer = 2, resolve = 3, end = 4 };
enum class ToNode : uint8_t { ready = 1, reply = 2, log = 3, ask = 4, ended = 5, mapped = 6, resolved = 7 };
inline constexpr uint8_t kind_part = 10;  // of either direction: bytes of a message whose last frame is still to come

// ---- Packets of the socket; the first byte says what it is

enum class Packet : uint8_t { bell = 0, start = 1, map = 2 };
inline constexpr size_t max_packet_bytes = 16 * 1024;

// With four descriptors: rings, crash record, code, data.
struct Start {
  uint32_t parent = 0;  // the node's process id
  uint32_t node_id = 0, node_count = 1;
  uint32_t ring_bytes = 0;
  uint64_t message_bytes = 0;                 // the longest message that the node takes
  uint64_t memory_bytes = 0;                  // what the cell may use beyond what it starts with
  uint64_t code_address = 0, code_bytes = 0;  // where both halves lie in the node, and so in the cell
  uint64_t data_address = 0, data_bytes = 0;
  std::vector<std::string> libraries;  // that the cell loads before its sandbox closes
};
inline constexpr size_t start_descriptors = 4;
Bytes encode_start(const Start& start);
Result<Start> decode_start(ByteView packet);

// With the descriptor of the data.
struct Map {
  uint64_t size = 0;
  bool writable = false;
  std::string name;
};
Bytes encode_map(const Map& map);
Result<Map> decode_map(ByteView packet);

// ---- Frames from the node

// A frame's body begins at a multiple of 16, and so does the payload in it.
struct Run {
  uint64_t entry = 0;
  uint32_t alignment = 16;  // of the payload
  bool wants_reply = false;
  bool forgets_data = false;     // what is mapped is not this call's to have
  bool has_target_args = false;  // the data target_args_name
  uint64_t frames = 0;           // the table by which exceptions leave its code; 0: none do
  ByteView payload;
};
inline constexpr std::string_view target_args_name;  // which no other data has
inline constexpr size_t run_head_bytes = 32;
void append_run_head(Bytes& out, const Run& run);
Result<Run> decode_run(ByteView body);

struct Answer {
  tc_status_t status = TC_OK;
  uint64_t first = 0, second = 0;  // what they mean depends on what was asked
  ByteView bytes;
};
void append_answer_head(Bytes& out, const Answer& answer);
Result<Answer> decode_answer(ByteView body);

struct Resolve {
  std::string library;  // as in Start::libraries; empty: the ABI and what compilers call by themselves
  std::string symbol;
};
void append_resolve(Bytes& out, const Resolve& resolve);
Result<Resolve> decode_resolve(ByteView body);

// ---- Frames from the cell; a `reply` is its bytes alone

struct Ready {
  std::vector<uint64_t> functions;  // as in abi_names::functions
  std::vector<uint64_t> runtime;    // as in abi_names::compiler_runtime; 0 for those that this processor has not
  std::string lacks;                // what the sandbox goes without, for the log; empty: nothing
};
void append_ready(Bytes& out, const Ready& ready);
Result<Ready> decode_ready(ByteView body);

struct Log {
  uint8_t level = 0;  // of tc_log(): 0 to 3
  std::string_view text;
};
void append_log(Bytes& out, const Log& log);
Result<Log> decode_log(ByteView body);

enum class AskKind : uint8_t { forward = 1, forward_as = 2, inject = 3, data = 4 };
struct Ask {
  AskKind kind = AskKind::forward;
  uint32_t node = 0;
  std::string_view name;  // of an ifunc or of data; empty for forward
  ByteView payload;
};
void append_ask_head(Bytes& out, const Ask& ask);
Result<Ask> decode_ask(ByteView body);

struct Ended {
  bool failed = false;
  int32_t code = 0;
  uint64_t run_ns = 0;
  std::string_view message;
};
void append_ended(Bytes& out, const Ended& ended);
Result<Ended> decode_ended(ByteView body);

struct Mapped {
  tc_status_t status = TC_OK;
  std::string_view name;
  std::string_view message;
};
void append_mapped(Bytes& out, const Mapped& mapped);
Result<Mapped> decode_mapped(ByteView body);

struct Resolved {
  uint64_t address = 0;  // 0: there is no such symbol
};
void append_resolved(Bytes& out, const Resolved& resolved);
Result<Resolved> decode_resolved(ByteView body);

}  // namespace tc::cell
