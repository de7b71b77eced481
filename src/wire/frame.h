// SPDX-License-Identifier: Apache-2.0
//
// One message on the wire: an 8-byte header word, then `length` bytes. docs/wire-format.md has every byte.
//
//     bits 0-3 kind | 4-7 flags | 8-31 number | 32-63 length
//
// A cached CALL with a payload of 1 byte has 9 bytes. Frames start at addresses that are 8 modulo 16. So every payload
// starts at a multiple of 16, and a small frame shares one cache line with its header. Padding fills the space up to
// the next frame. The header word of a frame is written last: a zero word means that no frame is there yet.
//
// Threads: any; plain values. One thread at a time uses a PackedReturnAddress.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/content_id.h"
#include "base/result.h"
#include "wire/chain.h"

namespace tc::wire {

inline constexpr uint32_t protocol_version = 8;

enum class Kind : uint8_t {
  none = 0,            // the zero word: no frame
  call = 1,            // run code `number` on the payload
  call_code = 2,       // CodeHead, bundle, payload: learn code `number`, then run it
  need = 3,            // Need: the target does not hold code `number`
  code = 4,            // CodeHead, bundle: the answer to need
  known = 5,           // the target holds code `number` now (acknowledgement of code and call_code)
  reply = 6,           // Reply: the result of a call
  barrier = 7,         // asks the receiver to answer when it has handled all before it, and the answer
  statistics = 8,      // asks the receiver about itself, and the answer (wire/statistics.h)
  disconnect = 9,      // Disconnect: the last frame, with the reason
  fragment = 10,       // a piece of a frame too large for the stream; number 1 marks the last piece
  pad = 11,            // nothing: skip `length` bytes (a ring's end)
  cancel = 12,         // the sender does not wait any more for the answer to a call that it made
  cluster_event = 13,  // a node was lost, or a snapshot of the calls that are alive (wire/cluster_event.h)
  compile = 14,        // remote compilation (wire/compile.h)
};
inline constexpr uint8_t last_kind = 14;

// Flags of call and call_code.
inline constexpr uint8_t flag_call_header = 1;  // a CallHeader of 16 bytes stands between header and payload
// A ReturnAddress stands behind the call header: the call came from a third node. On a reply, the flag means that the
// ReturnAddress of its receiver stands in front. A node that forwarded the call passes the reply on to this receiver,
// if it is one of its peers.
inline constexpr uint8_t flag_return_address = 2;
// True: a call may have these flags. Unknown flags would change what stands in front of the payload.
constexpr bool are_call_flags(uint8_t flags) noexcept {
  return flags == 0 || flags == flag_call_header || flags == (flag_call_header | flag_return_address);
}

// Flag of need and code: the slices are not for the target, but for a node that it passes the code on to.
inline constexpr uint8_t flag_for_another = 4;

inline constexpr uint32_t max_number = (1u << 24) - 1;
inline constexpr size_t header_bytes = 8;
inline constexpr size_t alignment = 16;

// The header word, taken apart.
struct FrameHeader {
  Kind kind = Kind::none;
  uint8_t flags = 0;
  uint32_t number = 0;
  uint32_t length = 0;
};

constexpr uint64_t encode(Kind kind, uint8_t flags, uint32_t number, uint32_t length) noexcept {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(flags & 15) << 4 |
         static_cast<uint64_t>(number & max_number) << 8 | static_cast<uint64_t>(length) << 32;
}
constexpr uint64_t encode(const FrameHeader& h) noexcept { return encode(h.kind, h.flags, h.number, h.length); }
constexpr FrameHeader decode(uint64_t word) noexcept {
  return {static_cast<Kind>(word & 15), static_cast<uint8_t>(word >> 4 & 15),
          static_cast<uint32_t>(word >> 8 & max_number), static_cast<uint32_t>(word >> 32)};
}

// Bytes from one header to the next. It has 64 bits, so that no length can overflow it.
constexpr size_t stride(size_t length) noexcept { return (header_bytes + length + alignment - 1) & ~(alignment - 1); }

// The header of a call that wants an answer. It has 16 bytes, so that the payload stays aligned.
struct CallHeader {
  uint64_t token = 0;        // the sender's name for the answer; never 0
  uint32_t deadline_ms = 0;  // how long the sender will wait; 0: for ever
  uint16_t hops_left = 0;    // how many times the call may still be forwarded
  uint16_t fanout_left = 0;  // how many further calls it may cause, directly or through others
};
inline constexpr size_t call_header_bytes = 16;
static_assert(sizeof(CallHeader) == call_header_bytes, "a call header is written as it lies in memory");
inline ByteView bytes_of(const CallHeader& call_header) noexcept { return std::as_bytes(std::span(&call_header, 1)); }
inline void write_call_header(std::byte* at, const CallHeader& call_header) noexcept {
  std::memcpy(at, &call_header, sizeof call_header);
}
inline CallHeader read_call_header(const std::byte* at) noexcept {
  CallHeader call_header;
  std::memcpy(&call_header, at, sizeof call_header);
  return call_header;
}

// Of a body that its sender may still write to: it is copied before it is checked.
inline Bytes private_copy(ByteView body) { return {body.begin(), body.end()}; }

// In front of a bundle in call_code and code. The payload of call_code starts at the next multiple of 16.
struct CodeHead {
  ContentId id;
  uint64_t carried = 0;  // which slices follow (Bundle::read_carried)
  uint32_t bundle_size = 0;
  Chain chain{};  // in call_code and code: the chain of calls by this number; its keys follow the head
};
inline constexpr size_t code_head_bytes = 32 + 8 + 4 + 4;  // the last four: how many keys follow
struct CodeBody {
  CodeHead head;
  ByteView bundle;
  ByteView payload;  // empty for `code`
};
void append_code(Bytes& out, const CodeHead& head, ByteView bundle);  // head, keys, bundle, padding
// Copies `section`, which append_code() made for an empty chain, and puts the chain in.
Bytes with_chain(ByteView section, const Chain& chain);
Result<CodeBody> decode_code(ByteView body);

struct Need {
  ContentId id;        // all zero when the target knows only the number
  std::string triple;  // of the node that will run the code
};
Bytes encode_need(const Need& need);
Result<Need> decode_need(ByteView body);

// The answer to a call with a token, or (token 0) the report that a call without one failed.
struct Reply {
  uint64_t token = 0;
  tc_status_t status = TC_OK;
  int32_t code = 0;      // what the ifunc gave to tc_fail()
  uint32_t node_id = 0;  // the node that answers
  std::string message;   // readable, empty when status is TC_OK
  ByteView bytes;        // the answer; in a decoded reply it points into the frame
};
// Encodes everything but the bytes, which follow at a multiple of 16.
Bytes encode_reply_head(const Reply& reply);
Bytes encode_reply(const Reply& reply);
Result<Reply> decode_reply(ByteView body);

// The frame's number says what a barrier frame is. Its body is the number of the barrier.
inline constexpr uint32_t barrier_ask = 1;     // answer when all calls before this are done
inline constexpr uint32_t barrier_answer = 2;  // all calls before that barrier ended
Bytes encode_barrier(uint64_t number);
Result<uint64_t> decode_barrier(ByteView body);

// The token of the call.
Bytes encode_cancel(uint64_t token);
Result<uint64_t> decode_cancel(ByteView body);

struct Disconnect {
  tc_status_t status = TC_OK;
  std::string reason;
};
Bytes encode_disconnect(const Disconnect& disconnect);
Result<Disconnect> decode_disconnect(ByteView body);

// A whole frame in a buffer of its own. It is for control messages and tests, not for the hot path.
Bytes make_frame(Kind kind, uint8_t flags, uint32_t number, ByteView body);

// The return address of a forwarded call: it names the caller, because the peer that sent the frame is not the caller.
// It stands behind the call header, in each frame that carries the call. It is padded to a multiple of 16 bytes.
struct ReturnAddress {
  uint64_t instance = 0;  // of the caller's node
  uint32_t node_id = 0;
  std::string address;  // where it listens, "host:port"; cut to 255 bytes
  // Not in a frame: what the node that has it here knows of it.
  uint64_t came_by = 0;      // the id of the link by which the call came; 0: this node made it
  bool may_connect = false;  // who named it may have this node connect to any address
};
inline constexpr size_t max_return_address_bytes = 272;  // 8 + 4 + 1 + 255, padded
Bytes encode_return_address(const ReturnAddress& return_address);
// `size` receives the bytes taken, padding included.
Result<ReturnAddress> decode_return_address(ByteView body, size_t& size);

// A return address and its bytes in a frame. All calls of one caller bring the same bytes. So reading the next one only
// compares them, and forwarding only copies them. Only the string of the address may allocate.
class PackedReturnAddress {
 public:
  PackedReturnAddress() noexcept {}  // empty: it has no bytes
  explicit PackedReturnAddress(ReturnAddress return_address) noexcept;

  const ReturnAddress& value() const noexcept { return value_; }
  ByteView bytes() const noexcept { return {bytes_.data(), size_}; }
  // ReturnAddress::came_by and may_connect.
  void set_origin(uint64_t came_by, bool may_connect) noexcept {
    value_.came_by = came_by;
    value_.may_connect = may_connect;
  }

  // Reads the return address at the start of `body`. The sender may still write to this memory. Returns the bytes
  // taken, with padding. TC_ERR_MALFORMED: `body` does not begin with a return address; this object does not change.
  Result<size_t> take(ByteView body) {
    const bool is_same = size_ != 0 && body.size() >= size_ && std::memcmp(body.data(), bytes_.data(), size_) == 0;
    return is_same ? size_ : take_another(body);
  }

 private:
  Result<size_t> take_another(ByteView body);

  ReturnAddress value_;
  size_t size_ = 0;
  std::array<std::byte, max_return_address_bytes> bytes_;  // `size_` of them
};

// The greeting of each side of a link, which the transport carries (transport/greeting.h). It names the node and the
// versions that the node understands.
struct Hello {
  uint32_t protocol = 0;
  uint8_t abi = 0;
  uint64_t instance = 0;  // epoch: a new random number each time a node starts
  uint32_t node_id = 0;
  uint64_t max_message = 0;  // largest frame body that this side accepts, after joining fragments
  std::string name;          // label for messages
  std::string address;       // where it listens; empty when it does not
  std::string triple;
  std::string cpu;
  std::string
      last_words;  // of the node at this address before, which a fatal signal ended; empty: there is nothing to tell
};

inline constexpr size_t most_last_words = 1024;

Bytes encode_hello(const Hello& hello);
// Checks sizes, and that labels are printable. TC_ERR_VERSION names both protocol versions when they differ.
Result<Hello> decode_hello(ByteView body);

}  // namespace tc::wire
