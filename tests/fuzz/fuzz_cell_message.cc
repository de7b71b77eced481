// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as one message or packet between a node and its cell, in both directions; the first byte says as which. The
// oracle: what is understood is written as it was, and what points into the message ends with it.
#include <algorithm>

#include "cell/protocol.h"
#include "read_frames.h"

namespace {

using namespace tc;        // NOLINT
using namespace tc::cell;  // NOLINT

// What stands behind a head that append() writes.
ByteView behind(const Run& run) { return run.payload; }
ByteView behind(const Answer& answer) { return answer.bytes; }
ByteView behind(const Ask& ask) { return ask.payload; }
ByteView behind(const auto&) { return {}; }

// A status that this build does not know has become another one.
bool has_one_form(const Answer& answer) { return answer.status != TC_ERR_INTERNAL; }
bool has_one_form(const Mapped& mapped) { return mapped.status != TC_ERR_INTERNAL; }
bool has_one_form(const auto&) { return true; }

void expect_same(Bytes written, ByteView rest, ByteView bytes) {
  written.insert(written.end(), rest.begin(), rest.end());
  fuzz::expect(std::ranges::equal(written, bytes));
}

template <class T>
void read_frame(Result<T> (*decode)(ByteView), void (*append)(Bytes&, const T&), ByteView bytes) {
  const auto message = decode(bytes);
  if (!message) return fuzz::expect(!message.error().message.empty());
  if (!has_one_form(*message)) return;
  Bytes written;
  append(written, *message);
  expect_same(std::move(written), behind(*message), bytes);
}

template <class T>
void read_packet(Result<T> (*decode)(ByteView), Bytes (*encode)(const T&), ByteView bytes) {
  const auto packet = decode(bytes);
  if (!packet) return fuzz::expect(!packet.error().message.empty());
  expect_same(encode(*packet), {}, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 11) {
    case 0: read_packet(decode_start, encode_start, bytes); break;
    case 1: read_packet(decode_map, encode_map, bytes); break;
    case 2: read_frame(decode_run, append_run_head, bytes); break;
    case 3: read_frame(decode_answer, append_answer_head, bytes); break;
    case 4: read_frame(decode_resolve, append_resolve, bytes); break;
    case 5: read_frame(decode_ready, append_ready, bytes); break;
    case 6: read_frame(decode_log, append_log, bytes); break;
    case 7: read_frame(decode_ask, append_ask_head, bytes); break;
    case 8: read_frame(decode_ended, append_ended, bytes); break;
    case 9: read_frame(decode_mapped, append_mapped, bytes); break;
    default: read_frame(decode_resolved, append_resolved, bytes); break;
  }
  return 0;
}
