// SPDX-License-Identifier: Apache-2.0
//
// Helpers that refuse, are missing, crash or hang, and compilers that do: the call fails with the reason.
#include "node/testing/compile_at.h"

namespace tc::node {
namespace {

TEST_F(CompileAt, without_a_helper_the_refusal_says_both_ways_out) {
  small([](Config& config) { config.compile_at.clear(); });
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_ERR_NO_SLICE);
  EXPECT_THAT(answer->message, HasSubstr("node test0: ifunc 'echo'"));
  EXPECT_THAT(answer->message, HasSubstr("build it without --no-object, with --target " + TargetTriple::host().text));
  EXPECT_THAT(answer->message, HasSubstr("start this node with --compile-at"));
}

TEST_F(CompileAt, a_helper_that_was_not_told_to_compiles_for_nobody) {
  small();
  helper("", [](Config& config) { config.compile_for = CompileFor::none; });
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_ERR_DENIED);
  EXPECT_THAT(answer->message, HasSubstr("asked test1 at n1 to compile it"));
  EXPECT_THAT(answer->message, HasSubstr("node 1 (test1) compiles for nobody; start it with --compile-for"));
}

TEST_F(CompileAt, a_helper_without_a_compiler_does_not_start) {
  auto config = Config::defaults();
  config.compile_for = CompileFor::user;
  config.compiler = (directory / "nothing").string();
  const auto node = Node::create(std::move(config), [&](const Config&, transport::Events& events) {
    return Result<std::unique_ptr<transport::Transport>>(net.network.join(events));
  });
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, TC_ERR_NOT_FOUND);
  EXPECT_THAT(node.error().message, HasSubstr("/nothing"));
}

TEST_F(CompileAt, a_helper_that_is_not_there_fails_the_call_and_is_found_when_it_comes) {
  small();
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_NE(answer->status, TC_OK);
  EXPECT_THAT(answer->message, HasSubstr("asked n1 to compile it"));
  auto& other = helper(compiler_giving(object_of("echo")));
  running.push_back(std::make_unique<Background>(other));
  tc_status_t status = TC_ERR_DISCONNECTED;
  const auto deadline = Deadline::after_ms(8000);
  std::string words;
  while (status != TC_OK && !deadline.passed()) {
    const auto again = call(bitcode_only("echo"));
    status = again->status;
    words = again->message;
  }
  EXPECT_EQ(status, TC_OK) << words;
}

TEST_F(CompileAt, the_words_of_the_compiler_reach_the_sender) {
  small();
  helper(compiler("echo 'LLVM knows no CPU pdp11' >&2; exit 1"));
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_ERR_COMPILE);
  EXPECT_THAT(answer->message, HasSubstr("which says: LLVM knows no CPU pdp11; or build it without --no-object"));
}

TEST_F(CompileAt, the_compiler_is_told_the_processor_of_the_node_that_asks) {
  nodes.push_back(net.make(0, [&](Config& config) {
    config.compile_for = CompileFor::any;
    config.compiler = compiler("echo \"$@\" >&2; exit 1");
  }));
  join();
  const auto bundle = bitcode_only("echo");
  const auto bytes = bundle.bytes();
  const auto arguments_for = [&](const std::string& cpu, const std::string& features) {
    wire::CompileQuestion question;
    question.token = 7;
    question.limit_ms = 4321;
    question.triple = TargetTriple::host().text;
    question.cpu = cpu;
    question.features = features;
    question.head = {bundle.id(), bundle.carried(), 0};
    question.bundle = bytes;
    caller.frames.clear();
    caller.send(Kind::compile, wire::compile_question, wire::encode_compile_question(question));
    EXPECT_TRUE(pump([&] { return caller.find(Kind::compile) != nullptr; }));
    const auto* const frame = caller.find(Kind::compile);
    return frame != nullptr ? wire::decode_compile_answer(frame->body).value().message : "";
  };
  EXPECT_THAT(arguments_for("z80", "+fast,-slow"),
              HasSubstr("compile --name=echo --target=" + TargetTriple::host().text +
                        " --limit-ms=4321 --cpu=z80 --features=+fast,-slow "));
  const auto none = arguments_for("", "");
  EXPECT_THAT(none, testing::Not(testing::AnyOf(HasSubstr("--cpu"), HasSubstr("--features")))) << none;
}

TEST_F(CompileAt, a_compiler_that_crashes_costs_one_refusal) {
  small();
  helper(compiler("kill -SEGV $$"));
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_ERR_COMPILE);
  EXPECT_THAT(answer->message, HasSubstr("the compiler was ended by signal 11"));
  EXPECT_EQ(call(test::load_bundle("append"))->status, TC_ERR_IFUNC) << "both nodes serve on";
}

TEST_F(CompileAt, a_compiler_that_hangs_is_ended_with_all_that_it_started) {
  small();
  helper(compiler("sleep 60 & echo $! >" + (directory / "child").string() + "; wait"),
         [](Config& config) { config.compile_limit_ms = 300; });
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_ERR_TIMEOUT);
  EXPECT_THAT(answer->message, HasSubstr("compiling took longer than 300 ms and was ended"));
  const auto text = read_file(directory / "child", 100);
  ASSERT_TRUE(text);
  const auto status = "/proc/" + std::to_string(std::stoi(std::string(as_text(*text)))) + "/cmdline";
  const auto gone = [&] { return read_file(status, 4096).value_or(Bytes{}).empty(); };  // a zombie has none
  const auto deadline = Deadline::after_ms(5000);
  while (!gone() && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(gone());
}

TEST_F(CompileAt, a_node_that_ends_takes_its_running_compiler_along) {
  small();
  helper(compiler("sleep 60"));
  start();
  client = net.make(99);
  link = test::connect(*client, "n0");
  char payload = 'x';
  const auto ifunc = client->register_bundle(bitcode_only("echo")).value();
  const auto message = source::Message::create(ifunc, &payload, 1, 1 << 20).value();
  const auto future = client->call(*link, *message, 8000, Deadline::after_ms(5000)).value();
  client->poll_until(Deadline::after_ms(8000), [&] { return runs() == 1; });
  running.pop_back();
  nodes.pop_back();  // the helper
  client->poll_until(Deadline::after_ms(8000), [&] { return future->ready.load(); });
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED) << future->message;
  EXPECT_THAT(future->message, HasSubstr("and lost it"));
}

TEST_F(CompileAt, an_object_of_the_helpers_is_linked_under_the_small_nodes_own_policy) {
  small();
  helper(compiler_giving(object_of("exported")));
  start();
  const auto answer = call(bitcode_only("exported"));
  EXPECT_EQ(answer->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(answer->message, HasSubstr("the object that test1 at n1 compiled of it"));
  EXPECT_THAT(answer->message, HasSubstr("application_answer"));
}

TEST_F(CompileAt, what_is_no_object_is_refused_with_the_helpers_name) {
  small();
  helper(compiler("echo junk >\"$out\""));
  start();
  const auto answer = call(bitcode_only("echo"));
  EXPECT_EQ(answer->status, TC_ERR_MALFORMED);
  EXPECT_THAT(answer->message, HasSubstr("the object that test1 at n1 compiled of it"));
}

}  // namespace
}  // namespace tc::node
