// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a node without LLVM, a helper that compiles for it, and peers made by hand. The compiler is a script
// that each test writes.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {

using test::Background;
using test::RawPeer;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

inline Bytes object_of(const std::string& name) {
  const auto built = test::load_bundle(name);
  const auto slice = built.find(SliceRole::target, SliceForm::object, TargetTriple::host());
  EXPECT_TRUE(slice);
  return built.unpack(slice.value()).value();
}

// The ifunc without its object.
inline Bundle bitcode_only(const std::string& name) {
  const auto built = test::load_bundle(name);
  auto manifest = built.manifest();
  std::erase_if(manifest.slices, [](const auto& slice) { return slice.form != SliceForm::bitcode; });
  std::vector<Bytes> stored;
  for (auto& slice : manifest.slices) {
    slice.compressed = false;
    stored.push_back(test::copy_of(as_bytes("what a compiler reads")));
    slice.unpacked_size = static_cast<uint32_t>(stored.back().size());
  }
  return Bundle::pack(std::move(manifest), std::move(stored)).value();
}

class CompileAt : public testing::Test {
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
  Node& small(const test::Net::Adjust& adjust = {}) {
    nodes.push_back(net.make(0, [&](Config& config) {
      config.compile_at = "n1";
      if (adjust) adjust(config);
    }));
    return *nodes.back();
  }
  Node& helper(const std::string& program, const test::Net::Adjust& adjust = {}) {
    nodes.push_back(net.make(1, [&](Config& config) {
      config.compile_for = CompileFor::any;
      config.compiler = program;
      if (adjust) adjust(config);
    }));
    return *nodes.back();
  }
  void start() {
    for (auto& node : nodes) running.push_back(std::make_unique<Background>(*node));
  }
  void stop() { running.clear(); }

  std::shared_ptr<Future> call(const Bundle& bundle, std::string payload = "hello", uint32_t deadline_ms = 8000) {
    if (!client) client = net.make(99);
    if (link == nullptr) link = test::connect(*client, "n0");
    const auto ifunc = client->register_bundle(bundle).value();
    const auto message = source::Message::create(ifunc, payload.data(), payload.size(), 1 << 20).value();
    return test::call(*client, *link, *message, deadline_ms);
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
    caller.send(Kind::call_code, wire::flag_call_header, 0,
                test::call_header(55) + test::code_section(bundle) + as_bytes("hello"));
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
  test::Net net;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Background>> running;
  std::unique_ptr<Node> client;
  Link* link = nullptr;
  RawPeer caller{net.network}, aide{net.network};
};

}  // namespace tc::node
