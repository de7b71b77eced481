// SPDX-License-Identifier: Apache-2.0
//
// Code that a helper compiles for a node without LLVM. tests/integration/test_compile_at.py tests it with LLVM.
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "base/file.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;
using wire::Kind;

// ---- A node without LLVM, and a helper that compiles for it by a script that each test writes

Bytes object_of(const std::string& name) {
  const auto built = load_bundle(name);
  const auto slice = built.find(SliceRole::target, SliceForm::object, TargetTriple::host());
  EXPECT_TRUE(slice);
  return built.unpack(slice.value()).value();
}

// The ifunc without its object. `bitcode`: what a compiler reads.
Bundle bitcode_only(const std::string& name, const std::string& bitcode = "what a compiler reads") {
  const auto built = load_bundle(name);
  auto manifest = built.manifest();
  std::erase_if(manifest.slices, [](const auto& slice) { return slice.form != SliceForm::bitcode; });
  std::vector<Bytes> stored;
  for (auto& slice : manifest.slices) {
    slice.compressed = false;
    stored.push_back(copy_of(as_bytes(bitcode)));
    slice.unpacked_size = static_cast<uint32_t>(stored.back().size());
  }
  return Bundle::pack(std::move(manifest), std::move(stored)).value();
}

class CompileAt : public testing::Test, protected Cluster {
 protected:
  ~CompileAt() override {
    running.clear();
    nodes.clear();
  }

  std::string write(const std::string& name, ByteView bytes) {
    const auto path = directory / name;
    EXPECT_TRUE(write_file_atomically(path, bytes));
    return path.string();
  }
  // `does`: shell commands; $out is the file to write.
  std::string compiler(const std::string& does) {
    const auto path = write("compiler", as_bytes("#!/bin/sh\nfor out; do :; done\necho >>" +
                                                 (directory / "runs").string() + "\n" + does + "\n"));
    ::chmod(path.c_str(), 0755);
    return path;
  }
  std::string compiler_giving(ByteView object) { return compiler("cp " + write("object", object) + " \"$out\""); }
  size_t runs() const {
    std::error_code none;
    const auto size = std::filesystem::file_size(directory / "runs", none);
    return none ? 0 : size;
  }

  // Listens as "n0", and asks at "n1".
  Node& small(const Net::Adjust& adjust = {}) {
    nodes.push_back(net.make(0, [&](Config& config) {
      config.compile_at = "n1";
      if (adjust) adjust(config);
    }));
    return *nodes.back();
  }
  Node& helper(const std::string& program, const Net::Adjust& adjust = {}) {
    nodes.push_back(net.make(1, [&](Config& config) {
      config.compile_for = CompileFor::any;
      config.compiler = program;
      if (adjust) adjust(config);
    }));
    return *nodes.back();
  }
  std::shared_ptr<Future> call(const Bundle& bundle, std::string_view payload = "hello", uint32_t deadline_ms = 8000) {
    if (!client) client = net.make(99);
    if (link == nullptr) link = test::connect(*client, "n0");
    return test::call(*client, *link, *test::message(*client, bundle, payload), deadline_ms);
  }
  static uint64_t stat(Node& node, std::string_view name) { return node.stat(name).value(); }

  // Two peers made by hand: one that calls n0, and the helper that n0 asks.
  bool pump(const std::function<bool()>& done) {
    const auto deadline = Deadline::after_ms(8000);
    while (!done()) {
      if (deadline.passed()) return false;
      turn();
    }
    return true;
  }
  void turn() {
    caller.progress();
    aide.progress();
    for (auto& node : nodes) node->wait(Deadline::after_ms(0));
  }
  void join() {
    caller.connect("n0");
    ASSERT_TRUE(pump([&] { return caller.peer.has_value(); }));
  }
  // Calls `bundle` at n0, as call 55; what the helper is asked then.
  wire::CompileQuestion ask(const Bundle& bundle) {
    aide.listen("n1");
    join();
    caller.send(Kind::call_code, wire::flag_call_header, 0, call_header(55) + code_section(bundle) + as_bytes("hello"));
    EXPECT_TRUE(pump([&] { return aide.find(Kind::compile) != nullptr; }));
    const auto* const frame = aide.find(Kind::compile);
    if (frame == nullptr) return {};
    EXPECT_EQ(frame->header.number, wire::compile_question);
    return wire::decode_compile_question(frame->body).value();
  }
  void answer(uint64_t token, tc_status_t status, const std::string& message, ByteView object) {
    aide.send(Kind::compile, wire::compile_answer, wire::encode_compile_answer({token, status, message, object}));
  }
  void expect_refused(tc_status_t status, const std::string& words) {
    ASSERT_TRUE(pump([&] { return caller.reply_to(55).has_value(); })) << words;
    EXPECT_EQ(caller.reply_to(55)->status, status) << caller.reply_to(55)->message;
    EXPECT_THAT(caller.reply_to(55)->message, HasSubstr(words));
    EXPECT_THAT(caller.reply_to(55)->message, HasSubstr("node test0"));
    EXPECT_FALSE(caller.lost);
  }

  const TemporaryDirectory temporary = TemporaryDirectory::create().value();
  const std::filesystem::path& directory = temporary.path();
  std::unique_ptr<Node> client;
  Link* link = nullptr;
  RawPeer caller{net.network}, aide{net.network};
};

// ---- How often the helper is asked, what is kept, and which calls wait

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
  EXPECT_EQ(call(load_bundle("echo"))->status, TC_OK);
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

// ---- Helpers that refuse, are missing, crash or hang, and compilers that do: the call fails with the reason

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
  EXPECT_EQ(call(load_bundle("append"))->status, TC_ERR_IFUNC) << "both nodes serve on";
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
  const auto future =
      client->call(*link, *test::message(*client, bitcode_only("echo")), 8000, Deadline::after_ms(5000)).value();
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

// ---- The frames between a node and its helper, where one of the two is a peer made by hand

// ---- A helper made by hand

TEST_F(CompileAt, the_question_names_code_and_processor_and_its_answer_lets_the_call_go_on) {
  small();
  const auto bundle = bitcode_only("echo");
  const auto question = ask(bundle);
  EXPECT_EQ(question.head.id, bundle.id());
  EXPECT_EQ(question.triple, TargetTriple::host().text);
  EXPECT_FALSE(question.cpu.empty());
  const auto sent = Bundle::read_carried(question.bundle, question.head.carried, question.head.id);
  ASSERT_TRUE(sent);
  EXPECT_TRUE(sent->find(SliceRole::target, SliceForm::bitcode, TargetTriple::host()));
  EXPECT_FALSE(caller.reply_to(55)) << "the call waits";
  answer(question.token, TC_OK, "", object_of("echo"));
  ASSERT_TRUE(pump([&] { return caller.reply_to(55).has_value(); }));
  EXPECT_EQ(caller.reply_to(55)->status, TC_OK) << caller.reply_to(55)->message;
}

TEST_F(CompileAt, a_call_whose_code_is_being_compiled_runs_although_its_caller_has_left) {
  auto& node = small();
  const auto token = ask(bitcode_only("echo")).token;
  caller.send(Kind::call, 0, 0, as_bytes("behind it"));
  for (int i = 0; i < 8; ++i) turn();
  caller.vanish();
  for (int i = 0; i < 8; ++i) turn();
  answer(token, TC_OK, "", object_of("echo"));
  EXPECT_TRUE(pump([&] { return stat(node, "executed") == 2; }));
}

TEST_F(CompileAt, a_helper_that_dies_while_it_compiles_fails_what_waited) {
  small();
  (void)ask(bitcode_only("echo"));
  aide.vanish();
  expect_refused(TC_ERR_DISCONNECTED, "asked n1 to compile it");
}

TEST_F(CompileAt, a_helper_that_says_nothing_fails_the_call_at_the_limit) {
  small([](Config& config) { config.compile_limit_ms = 100; });
  (void)ask(bitcode_only("echo"));
  expect_refused(TC_ERR_TIMEOUT, "had no answer within 100 ms");
  answer(1, TC_OK, "", object_of("echo"));  // too late: nobody minds
  for (int i = 0; i < 8; ++i) pump([] { return true; });
  EXPECT_FALSE(aide.bye);
}

TEST_F(CompileAt, sixty_four_ifuncs_may_wait_for_the_helper_and_one_more_is_refused) {
  small();
  aide.listen("n1");
  constexpr size_t most = 64;
  std::deque<RawPeer> callers;  // one for each ifunc: calls of one caller wait for those before
  const auto pump_all = [&](const std::function<bool()>& done) {
    return pump([&] {
      for (auto& one : callers) one.progress();
      return done();
    });
  };
  const auto questions = [&] {
    return static_cast<size_t>(
        std::ranges::count(aide.frames, Kind::compile, [](const auto& f) { return f.header.kind; }));
  };
  for (size_t i = 0; i <= most; ++i) {
    auto& one = callers.emplace_back(net.network);
    one.says.instance += i;
    one.connect("n0");
    ASSERT_TRUE(pump_all([&] { return one.peer.has_value(); })) << i;
    const auto bundle = bitcode_only("echo", fmt::format("what a compiler reads of ifunc {}", i));
    one.send(Kind::call_code, wire::flag_call_header, 0, call_header(55) + code_section(bundle) + as_bytes("hello"));
    ASSERT_TRUE(pump_all([&] { return i == most || questions() == i + 1; })) << i;
  }
  ASSERT_TRUE(pump_all([&] { return callers.back().reply_to(55).has_value(); }));
  EXPECT_EQ(callers.back().reply_to(55)->status, TC_ERR_BUSY);
  EXPECT_THAT(callers.back().reply_to(55)->message,
              HasSubstr("64 ifuncs wait to be compiled at n1 already, and at most 64 may"));
  callers.pop_back();
  for (const auto& frame : std::vector(aide.frames))
    if (frame.header.kind == Kind::compile)
      answer(wire::decode_compile_question(frame.body).value().token, TC_OK, "", object_of("echo"));
  for (auto& one : callers) {
    ASSERT_TRUE(pump_all([&] { return one.reply_to(55).has_value(); }));
    EXPECT_EQ(one.reply_to(55)->status, TC_OK) << one.reply_to(55)->message;
  }
  EXPECT_EQ(questions(), most);
}

TEST_F(CompileAt, answers_that_nobody_asked_for_are_ignored) {
  auto& node = small();
  const auto token = ask(bitcode_only("echo")).token;
  answer(token + 1, TC_OK, "", object_of("echo"));
  answer(token, TC_ERR_COMPILE, "no", {});
  answer(token, TC_OK, "", object_of("echo"));
  expect_refused(TC_ERR_COMPILE, "which says: no");
  EXPECT_EQ(stat(node, "codes"), 0u);
}

TEST_F(CompileAt, an_answer_of_a_peer_that_was_not_asked_is_ignored) {
  auto& node = small();
  const auto token = ask(bitcode_only("echo")).token;
  caller.send(Kind::compile, wire::compile_answer, wire::encode_compile_answer({token, TC_ERR_COMPILE, "a lie", {}}));
  for (int i = 0; i < 20; ++i) turn();
  EXPECT_FALSE(caller.reply_to(55).has_value()) << "the call waits for the helper";
  answer(token, TC_OK, "", object_of("echo"));
  ASSERT_TRUE(pump([&] { return caller.reply_to(55).has_value(); }));
  EXPECT_EQ(caller.reply_to(55)->status, TC_OK) << caller.reply_to(55)->message;
  EXPECT_EQ(stat(node, "codes"), 1u);
}

TEST_F(CompileAt, an_answer_that_is_cut_short_costs_the_helper_its_link) {
  small();
  const auto token = ask(bitcode_only("echo")).token;
  auto body = wire::encode_compile_answer({token, TC_OK, "", as_bytes("x")});
  body.resize(13);
  aide.send(Kind::compile, wire::compile_answer, body);
  expect_refused(TC_ERR_MALFORMED, "compile answer");
  EXPECT_TRUE(aide.bye);
}

TEST_F(CompileAt, objects_with_any_bit_turned_are_loaded_or_refused_but_break_nothing) {
  auto& node = small();
  aide.listen("n1");
  join();
  const auto object = object_of("refuse");
  uint32_t number = 0;
  for (size_t bit = 0; bit < 64 * 8; bit += 3, ++number) {  // the ELF header: what is loaded still runs
    const auto bundle = renamed(bitcode_only("refuse"), "turned" + std::to_string(bit));
    aide.frames.clear();
    const auto token = 1000 + number;
    caller.send(Kind::call_code, wire::flag_call_header, number, call_header(token) + code_section(bundle));
    ASSERT_TRUE(pump([&] { return aide.find(Kind::compile) != nullptr; })) << bit;
    auto turned = object;
    turned[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto question = wire::decode_compile_question(aide.find(Kind::compile)->body).value();
    answer(question.token, TC_OK, "", turned);
    ASSERT_TRUE(pump([&] { return caller.reply_to(token).has_value(); })) << bit;
    EXPECT_NE(caller.reply_to(token)->status, TC_OK);
  }
  EXPECT_FALSE(aide.lost);
  EXPECT_EQ(stat(node, "links"), 2u);
}

// ---- A node that asks, made by hand

TEST_F(CompileAt, questions_that_make_no_sense_are_answered_and_cut_ones_break_the_link) {
  nodes.push_back(net.make(0, [&](Config& config) {
    config.compile_for = CompileFor::any;
    config.compiler = compiler_giving(object_of("echo"));
  }));
  join();
  const auto bundle = bitcode_only("echo");
  const auto ask_with = [&](const std::string& triple, const ContentId& id, ByteView bytes) {
    wire::CompileQuestion question;
    question.token = 7;
    question.limit_ms = 5000;
    question.triple = triple;
    question.head = {id, bundle.carried(), 0};
    question.bundle = bytes;
    caller.frames.clear();
    caller.send(Kind::compile, wire::compile_question, wire::encode_compile_question(question));
    EXPECT_TRUE(pump([&] { return caller.find(Kind::compile) != nullptr || caller.bye; }));
    const auto* const frame = caller.find(Kind::compile);
    return frame != nullptr ? wire::decode_compile_answer(frame->body).value().status : TC_ERR_INTERNAL;
  };
  const auto host = TargetTriple::host().text;
  const auto bytes = bundle.bytes();
  EXPECT_EQ(ask_with(host, bundle.id(), bytes), TC_OK);
  EXPECT_EQ(ask_with(host, ContentId::of(bytes), bytes), TC_ERR_MALFORMED) << "not what its id says";
  EXPECT_EQ(ask_with(host, bundle.id(), ByteView(bytes).first(20)), TC_ERR_MALFORMED);
  EXPECT_EQ(ask_with("s390x-unknown-linux-gnu", bundle.id(), bytes), TC_ERR_NO_SLICE);
  EXPECT_NE(ask_with("nonsense", bundle.id(), bytes), TC_OK);
  EXPECT_FALSE(caller.bye);
  caller.send(Kind::compile, wire::compile_question, Bytes(9));
  ASSERT_TRUE(pump([&] { return caller.bye.has_value(); }));
  EXPECT_THAT(caller.bye->reason, HasSubstr("compile question"));
}

TEST_F(CompileAt, compile_frames_of_another_type_break_the_link) {
  small();
  join();
  caller.send(Kind::compile, 2, Bytes(8));
  ASSERT_TRUE(pump([&] { return caller.bye.has_value(); }));
  EXPECT_THAT(caller.bye->reason, HasSubstr("of type 2 when 0 and 1 are known"));
}

}  // namespace
}  // namespace tc::node::test
