// SPDX-License-Identifier: Apache-2.0
#include "cell/protocol.h"

#include <gmock/gmock.h>

#include <functional>

namespace tc::cell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Start some_start() {
  return {.parent = 4711,
          .node_id = 3,
          .node_count = 8,
          .ring_bytes = 65536,
          .message_bytes = 1 << 20,
          .memory_bytes = 1 << 30,
          .code_address = 0x2000'0000'0000,
          .code_bytes = 1 << 26,
          .data_address = 0x2000'0400'0000,
          .data_bytes = 1 << 26,
          .libraries = {"libm.so.6", "libz.so.1"}};
}

template <class T>
Bytes bytes_of(void (*append)(Bytes&, const T&), const T& value) {
  Bytes out;
  append(out, value);
  return out;
}

// Bytes of each message, and what reads them: true if it takes them.
struct Kind {
  std::string name;
  Bytes bytes;
  bool has_rest;  // the last part of the message is as long as the bytes are
  std::function<bool(ByteView)> read;
};

std::vector<Kind> all_kinds() {
  return {
      {"start", encode_start(some_start()), false, [](ByteView b) { return decode_start(b).has_value(); }},
      {"map", encode_map({.size = 10, .writable = true, .name = "board"}), false,
       [](ByteView b) { return decode_map(b).has_value(); }},
      {"run", bytes_of(append_run_head, cell::Run{.entry = 1, .alignment = 64, .frames = 2}), true,
       [](ByteView b) { return decode_run(b).has_value(); }},
      {"answer", bytes_of(append_answer_head, Answer{.status = TC_ERR_BUSY, .first = 1, .second = 2}), true,
       [](ByteView b) { return decode_answer(b).has_value(); }},
      {"resolve", bytes_of(append_resolve, Resolve{"libm.so.6", "cos"}), false,
       [](ByteView b) { return decode_resolve(b).has_value(); }},
      {"ready", bytes_of(append_ready, Ready{{1, 2, 3}, {4, 0}, "Landlock"}), false,
       [](ByteView b) { return decode_ready(b).has_value(); }},
      {"log", bytes_of(append_log, Log{2, "a line"}), false, [](ByteView b) { return decode_log(b).has_value(); }},
      {"ask", bytes_of(append_ask_head, Ask{.kind = AskKind::inject, .node = 3, .name = "hop"}), true,
       [](ByteView b) { return decode_ask(b).has_value(); }},
      {"ended", bytes_of(append_ended, Ended{true, -3, 1234, "words"}), false,
       [](ByteView b) { return decode_ended(b).has_value(); }},
      {"mapped", bytes_of(append_mapped, Mapped{TC_ERR_NO_MEMORY, "board", "words"}), false,
       [](ByteView b) { return decode_mapped(b).has_value(); }},
      {"resolved", bytes_of(append_resolved, Resolved{77}), false,
       [](ByteView b) { return decode_resolved(b).has_value(); }},
  };
}

TEST(CellProtocol, a_start_is_read_as_it_was_written) {
  const auto read = decode_start(encode_start(some_start()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->parent, 4711u);
  EXPECT_EQ(read->node_id, 3u);
  EXPECT_EQ(read->node_count, 8u);
  EXPECT_EQ(read->ring_bytes, 65536u);
  EXPECT_EQ(read->message_bytes, 1u << 20);
  EXPECT_EQ(read->memory_bytes, 1u << 30);
  EXPECT_EQ(read->code_address, 0x2000'0000'0000u);
  EXPECT_EQ(read->code_bytes, 1u << 26);
  EXPECT_EQ(read->data_address, 0x2000'0400'0000u);
  EXPECT_EQ(read->data_bytes, 1u << 26);
  EXPECT_THAT(read->libraries, ElementsAre("libm.so.6", "libz.so.1"));
}

TEST(CellProtocol, messages_to_a_cell_are_read_as_they_were_written) {
  const auto map = decode_map(encode_map({.size = 10, .writable = true, .name = "board"}));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->size, 10u);
  EXPECT_TRUE(map->writable);
  EXPECT_EQ(map->name, "board");

  auto bytes =
      bytes_of(append_run_head,
               cell::Run{.entry = 1, .alignment = 64, .wants_reply = true, .has_target_args = true, .frames = 3});
  EXPECT_EQ(bytes.size(), run_head_bytes);
  Writer(bytes).bytes(as_bytes("payload"));
  const auto run = decode_run(bytes);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->entry, 1u);
  EXPECT_EQ(run->alignment, 64u);
  EXPECT_TRUE(run->wants_reply);
  EXPECT_FALSE(run->forgets_data);
  EXPECT_TRUE(run->has_target_args);
  EXPECT_EQ(run->frames, 3u);
  EXPECT_EQ(as_text(run->payload), "payload");

  bytes = bytes_of(append_answer_head, Answer{.status = TC_ERR_BUSY, .first = 1, .second = 2});
  Writer(bytes).bytes(as_bytes("rest"));
  const auto answer = decode_answer(bytes);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, TC_ERR_BUSY);
  EXPECT_EQ(answer->first, 1u);
  EXPECT_EQ(answer->second, 2u);
  EXPECT_EQ(as_text(answer->bytes), "rest");

  const auto resolve = decode_resolve(bytes_of(append_resolve, Resolve{"libm.so.6", "cos"}));
  ASSERT_TRUE(resolve);
  EXPECT_EQ(resolve->library, "libm.so.6");
  EXPECT_EQ(resolve->symbol, "cos");
}

TEST(CellProtocol, messages_of_a_cell_are_read_as_they_were_written) {
  auto bytes = bytes_of(append_ready, Ready{{1, 2, 3}, {4, 0}, "Landlock"});
  const auto ready = decode_ready(bytes);
  ASSERT_TRUE(ready);
  EXPECT_THAT(ready->functions, ElementsAre(1, 2, 3));
  EXPECT_THAT(ready->runtime, ElementsAre(4, 0));
  EXPECT_EQ(ready->lacks, "Landlock");

  bytes = bytes_of(append_log, Log{2, "a line"});
  const auto log = decode_log(bytes);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->level, 2);
  EXPECT_EQ(log->text, "a line");

  bytes = bytes_of(append_ask_head, Ask{.kind = AskKind::inject, .node = 3, .name = "hop"});
  Writer(bytes).bytes(as_bytes("payload"));
  const auto ask = decode_ask(bytes);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->kind, AskKind::inject);
  EXPECT_EQ(ask->node, 3u);
  EXPECT_EQ(ask->name, "hop");
  EXPECT_EQ(as_text(ask->payload), "payload");

  bytes = bytes_of(append_ended, Ended{true, -3, 1234, "words"});
  const auto ended = decode_ended(bytes);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->failed);
  EXPECT_EQ(ended->code, -3);
  EXPECT_EQ(ended->run_ns, 1234u);
  EXPECT_EQ(ended->message, "words");

  bytes = bytes_of(append_mapped, Mapped{TC_ERR_NO_MEMORY, "board", "words"});
  const auto mapped = decode_mapped(bytes);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->status, TC_ERR_NO_MEMORY);
  EXPECT_EQ(mapped->name, "board");
  EXPECT_EQ(mapped->message, "words");

  bytes = bytes_of(append_resolved, Resolved{77});
  const auto resolved = decode_resolved(bytes);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->address, 77u);
}

TEST(CellProtocol, a_message_that_was_cut_is_refused_wherever_it_was) {
  for (const auto& kind : all_kinds()) {
    EXPECT_TRUE(kind.read(kind.bytes)) << kind.name;
    for (size_t size = 0; size < kind.bytes.size(); ++size)
      EXPECT_FALSE(kind.read(ByteView(kind.bytes).first(size))) << kind.name << " of " << size << " bytes";
  }
}

TEST(CellProtocol, bytes_that_are_left_over_are_refused) {
  for (const auto& kind : all_kinds()) {
    auto longer = kind.bytes;
    longer.push_back({});
    EXPECT_EQ(kind.read(longer), kind.has_rest) << kind.name;
  }
}

TEST(CellProtocol, any_byte_may_be_another_one) {
  size_t taken = 0, refused = 0;
  for (const auto& kind : all_kinds())
    for (size_t at = 0; at < kind.bytes.size(); ++at)
      for (unsigned value = 0; value < 256; ++value) {
        auto changed = kind.bytes;
        changed[at] = static_cast<std::byte>(value);
        (kind.read(changed) ? taken : refused) += 1;
      }
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 0u);
}

TEST(CellProtocol, values_that_mean_nothing_are_refused) {
  const auto reads = [](Bytes bytes, size_t at, unsigned value, const auto& read) {
    bytes[at] = static_cast<std::byte>(value);
    return read(bytes).has_value();
  };
  const auto ask = bytes_of(append_ask_head, Ask{.kind = AskKind::data, .name = "board"});
  const auto log = bytes_of(append_log, Log{2, "a line"});
  const auto ended = bytes_of(append_ended, Ended{});
  for (unsigned value = 0; value < 256; ++value) {
    EXPECT_EQ(reads(ask, 0, value, decode_ask), value >= 1 && value <= 4) << value;
    EXPECT_EQ(reads(log, 0, value, decode_log), value <= 3) << value;
    EXPECT_EQ(reads(ended, 0, value, decode_ended), value <= 1) << value;
  }
}

TEST(CellProtocol, a_call_has_nothing_between_its_head_and_its_payload) {
  for (size_t at = run_head_bytes - 9; at < run_head_bytes; ++at) {
    auto bytes = bytes_of(append_run_head, cell::Run{});
    bytes[at] = std::byte{1};
    EXPECT_FALSE(decode_run(bytes)) << at;
  }
}

TEST(CellProtocol, a_cell_of_another_version_says_so) {
  auto bytes = encode_start(some_start());
  bytes[1] = std::byte{99};
  const auto read = decode_start(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, TC_ERR_VERSION);
  EXPECT_THAT(read.error().message, HasSubstr("version 99"));
}

TEST(CellProtocol, more_addresses_than_there_are_bytes_take_no_memory) {
  Bytes bytes;
  Writer(bytes).u32(UINT32_MAX).u64(1);
  EXPECT_FALSE(decode_ready(bytes));
}

}  // namespace
}  // namespace tc::cell
