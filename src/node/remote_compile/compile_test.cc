// SPDX-License-Identifier: Apache-2.0
//
// Code that a helper compiles for a node without LLVM: how often it is asked, what is kept, and which calls wait. With
// LLVM: tests/integration/test_compile_at.py.
#include "node/testing/compile_at.h"

namespace tc::node {
namespace {

TEST_F(CompileAt, bitcode_is_compiled_by_the_helper_once_and_runs) {
  auto& node = small();
  auto& other = helper(compiler_giving(object_of("echo")));
  start();
  for (const auto* const word : {"hello", "again"}) {
    const auto answer = call(bitcode_only("echo"), word);
    ASSERT_EQ(answer->status, TC_OK) << answer->message;
    EXPECT_EQ(as_text(answer->bytes), word);
  }
  client.reset();  // another sender finds it there
  link = nullptr;
  EXPECT_EQ(call(bitcode_only("echo"))->status, TC_OK);
  client.reset();
  stop();
  EXPECT_EQ(stat(node, "compile-requests"), 1u);
  EXPECT_EQ(stat(other, "compiled-for-others"), 1u);
  EXPECT_EQ(runs(), 1u);
}

TEST_F(CompileAt, an_object_slice_is_run_without_a_question) {
  auto& node = small();
  start();
  EXPECT_EQ(call(test::load_bundle("echo"))->status, TC_OK);
  stop();
  EXPECT_EQ(stat(node, "compile-requests"), 0u);
}

TEST_F(CompileAt, calls_that_wait_run_in_order_after_one_question) {
  auto& node = small();
  helper(compiler_giving(object_of("append")));
  unsigned char text[64] = {};
  node.expose("text", text, sizeof text);
  start();
  client = net.make(99);
  link = test::connect(*client, "n0");
  const auto ifunc = client->register_bundle(bitcode_only("append")).value();
  std::vector<std::shared_ptr<Future>> calls;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const auto message = source::Message::create(ifunc, &letter, 1, 1 << 20).value();
    calls.push_back(client->call(*link, *message, 8000, Deadline::after_ms(5000)).value());
  }
  for (auto& one : calls) {
    client->poll_until(Deadline::after_ms(9000), [&] { return one->ready.load(); });
    EXPECT_EQ(one->status, TC_OK) << one->message;
  }
  stop();
  EXPECT_EQ(std::string(reinterpret_cast<char*>(text) + 1, text[0]), "abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(stat(node, "compile-requests"), 1u);
}

TEST_F(CompileAt, code_that_was_evicted_is_sent_and_compiled_again) {
  auto& node = small();
  helper(compiler_giving(object_of("echo")));
  start();
  EXPECT_EQ(call(bitcode_only("echo"))->status, TC_OK);
  stop();
  node.store().evict(bitcode_only("echo").id());
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_OK) << answer->message;
  stop();
  EXPECT_EQ(stat(node, "compile-requests"), 2u);
  EXPECT_EQ(stat(node, "needs"), 1u);
}

TEST_F(CompileAt, with_a_cache_directory_an_object_outlives_its_node) {
  const auto cached = [&](Config& config) { config.code.cache_dir = (directory / "cache").string(); };
  auto* node = &small(cached);
  helper(compiler_giving(object_of("echo")));
  start();
  EXPECT_EQ(call(bitcode_only("echo"))->status, TC_OK);
  client.reset();
  link = nullptr;
  stop();
  nodes.clear();
  node = &small(cached);  // and no helper
  start();
  EXPECT_EQ(call(bitcode_only("echo"))->status, TC_OK);
  stop();
  EXPECT_EQ(stat(*node, "compile-requests"), 0u);
}

}  // namespace
}  // namespace tc::node
