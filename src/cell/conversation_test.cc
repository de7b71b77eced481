// SPDX-License-Identifier: Apache-2.0
//
// What a cell may say at which moment. A cell that says anything else has broken a rule.
#include "cell/conversation.h"

#include <gtest/gtest.h>

#include <iterator>

#include "wire/abi_names.h"

namespace tc::cell {
namespace {

class AConversation : public testing::Test {
 protected:
  static Bytes ready_bytes(size_t functions = std::size(abi_names::functions),
                           size_t runtime = std::size(abi_names::compiler_runtime)) {
    Bytes bytes;
    append_ready(bytes, {.functions = std::vector<uint64_t>(functions, 1),
                         .runtime = std::vector<uint64_t>(runtime, 2),
                         .lacks = "Landlock"});
    return bytes;
  }
  // A message of that kind that has nothing wrong in itself.
  static Bytes body_of(ToNode kind) {
    Bytes bytes;
    switch (kind) {
      case ToNode::ready: return ready_bytes();
      case ToNode::reply: Writer(bytes).bytes(as_bytes("a reply")); break;
      case ToNode::log: append_log(bytes, {2, "a line"}); break;
      case ToNode::ask: append_ask_head(bytes, {.kind = AskKind::inject, .node = 3, .name = "hop"}); break;
      case ToNode::ended: append_ended(bytes, {true, -3, 1234, "words"}); break;
      case ToNode::mapped: append_mapped(bytes, {TC_OK, "board", ""}); break;
      case ToNode::resolved: append_resolved(bytes, {77}); break;
    }
    return bytes;
  }
  // True: it may say that now.
  bool says(ToNode kind, uint32_t number) {
    body_ = body_of(kind);
    const auto event = conversation.read({static_cast<uint8_t>(kind), number, body_});
    if (!event) {
      EXPECT_EQ(event.error().code, TC_ERR_MALFORMED);
    }
    return event.has_value();
  }
  bool says(ToNode kind) { return says(kind, conversation.call_number()); }
  // What it may say next; each is said to a conversation of its own.
  std::vector<ToNode> may_say() {
    std::vector<ToNode> may;
    const auto now = conversation;
    for (const auto kind : every_kind) {
      if (says(kind)) may.push_back(kind);
      conversation = now;
    }
    return may;
  }
  void become_ready() { ASSERT_TRUE(says(ToNode::ready, 0)); }

  static constexpr ToNode every_kind[] = {ToNode::ready, ToNode::reply,  ToNode::log,     ToNode::ask,
                                          ToNode::ended, ToNode::mapped, ToNode::resolved};
  using Kinds = std::vector<ToNode>;
  Conversation conversation;
  Bytes body_;
};

TEST_F(AConversation, begins_when_the_cell_is_ready_and_with_nothing_else) {
  EXPECT_TRUE(conversation.is_starting());
  EXPECT_EQ(may_say(), Kinds{ToNode::ready});
  become_ready();
  EXPECT_TRUE(conversation.is_idle());
  EXPECT_FALSE(conversation.is_starting());
  EXPECT_EQ(may_say(), Kinds{}) << "there is no call";
}

TEST_F(AConversation, does_not_begin_with_a_cell_that_has_other_functions) {
  const size_t functions = std::size(abi_names::functions), runtime = std::size(abi_names::compiler_runtime);
  for (const auto& [more, less] : {std::pair{functions + 1, runtime},
                                   {functions - 1, runtime},
                                   {functions, runtime + 1},
                                   {functions, runtime - 1}}) {
    const auto bytes = ready_bytes(more, less);
    EXPECT_FALSE(conversation.read({static_cast<uint8_t>(ToNode::ready), 0, bytes})) << more << " and " << less;
    EXPECT_TRUE(conversation.is_starting());
  }
}

TEST_F(AConversation, gives_what_was_said) {
  const auto bytes = ready_bytes();
  const auto event = conversation.read({static_cast<uint8_t>(ToNode::ready), 0, bytes});
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(std::get<Ready>(*event).lacks, "Landlock");
  const auto number = conversation.begin(true);
  body_ = body_of(ToNode::reply);
  EXPECT_EQ(as_text(std::get<Reply>(*conversation.read({static_cast<uint8_t>(ToNode::reply), number, body_})).bytes),
            "a reply");
  body_ = body_of(ToNode::ended);
  EXPECT_EQ(std::get<Ended>(*conversation.read({static_cast<uint8_t>(ToNode::ended), number, body_})).code, -3);
}

TEST_F(AConversation, has_lines_a_reply_questions_and_an_end_while_a_call_runs) {
  become_ready();
  conversation.begin(true);
  EXPECT_TRUE(conversation.is_running());
  EXPECT_EQ(may_say(), (Kinds{ToNode::reply, ToNode::log, ToNode::ask, ToNode::ended}));
  EXPECT_TRUE(says(ToNode::log));
  EXPECT_TRUE(says(ToNode::log)) << "as many as it likes";
  EXPECT_TRUE(says(ToNode::ended));
  EXPECT_TRUE(conversation.is_idle());
  EXPECT_EQ(may_say(), Kinds{});
}

TEST_F(AConversation, has_one_reply_for_each_call_that_wants_one) {
  become_ready();
  for (int i = 0; i < 3; ++i) {
    conversation.begin(true);
    EXPECT_TRUE(says(ToNode::reply));
    EXPECT_EQ(may_say(), (Kinds{ToNode::log, ToNode::ask, ToNode::ended}));
    EXPECT_TRUE(says(ToNode::ended));
  }
  conversation.begin(false);
  EXPECT_EQ(may_say(), (Kinds{ToNode::log, ToNode::ask, ToNode::ended}));
}

TEST_F(AConversation, waits_for_the_answer_after_a_question) {
  become_ready();
  conversation.begin(true);
  EXPECT_FALSE(conversation.answer(false)) << "nothing was asked";
  EXPECT_TRUE(says(ToNode::ask));
  EXPECT_EQ(may_say(), Kinds{});
  EXPECT_TRUE(conversation.answer(false));
  EXPECT_FALSE(conversation.answer(false));
  EXPECT_EQ(may_say(), (Kinds{ToNode::reply, ToNode::log, ToNode::ask, ToNode::ended}));
}

// As when the call was forwarded.
TEST_F(AConversation, has_no_reply_of_a_call_that_the_node_answers) {
  become_ready();
  conversation.begin(true);
  EXPECT_TRUE(says(ToNode::ask));
  EXPECT_TRUE(conversation.answer(true));
  EXPECT_EQ(may_say(), (Kinds{ToNode::log, ToNode::ask, ToNode::ended}));
  EXPECT_TRUE(says(ToNode::ended));
  conversation.begin(true);
  EXPECT_TRUE(says(ToNode::reply)) << "of the next call";
}

TEST_F(AConversation, is_about_the_call_that_runs) {
  become_ready();
  const auto first = conversation.begin(true);
  EXPECT_TRUE(says(ToNode::ended));
  const auto second = conversation.begin(true);
  EXPECT_NE(first, second);
  EXPECT_EQ(conversation.call_number(), second);
  for (const auto kind : {ToNode::reply, ToNode::log, ToNode::ask, ToNode::ended}) {
    EXPECT_FALSE(says(kind, first));
    EXPECT_FALSE(says(kind, second + 1));
  }
  EXPECT_TRUE(says(ToNode::reply, second));
}

TEST_F(AConversation, hears_of_data_and_addresses_as_often_as_was_asked_for_them_at_any_time) {
  become_ready();
  for (const bool runs : {false, true}) {
    if (runs) conversation.begin(true);
    for (int i = 0; i < 2; ++i) {
      conversation.await_mapped();
      conversation.await_resolved();
    }
    for (const auto kind : {ToNode::mapped, ToNode::resolved}) {
      EXPECT_TRUE(says(kind));
      EXPECT_TRUE(says(kind));
      EXPECT_FALSE(says(kind));
    }
  }
  EXPECT_TRUE(says(ToNode::ask));
  conversation.await_mapped();
  EXPECT_EQ(may_say(), Kinds{ToNode::mapped}) << "before the answer";
}

TEST_F(AConversation, has_nothing_more_once_it_is_over) {
  become_ready();
  conversation.begin(true);
  conversation.end();
  EXPECT_TRUE(conversation.is_over());
  EXPECT_FALSE(conversation.is_running());
  EXPECT_EQ(may_say(), Kinds{});
}

TEST_F(AConversation, has_no_messages_of_unknown_kinds_or_with_wrong_bytes) {
  become_ready();
  const auto number = conversation.begin(true);
  for (const uint8_t kind : {uint8_t{0}, uint8_t{8}, kind_part, uint8_t{255}})
    EXPECT_FALSE(conversation.read({kind, number, {}})) << int{kind};
  EXPECT_FALSE(conversation.read({static_cast<uint8_t>(ToNode::log), number, {}}));
}

}  // namespace
}  // namespace tc::cell
