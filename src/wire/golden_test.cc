// SPDX-License-Identifier: Apache-2.0
//
// The bytes of the wire formats, as files under tests/golden/. A change here is a change of the protocol: raise its
// version, or find out what went wrong. TC_UPDATE_GOLDEN=1 writes the files anew.
#include "wire/testing/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "wire/cluster_event.h"
#include "wire/compile.h"
#include "wire/frame.h"
#include "wire/statistics.h"
#include "wire/testing/bundles.h"

namespace tc {
namespace {

using namespace wire;  // NOLINT: a test about wire formats

using testing::expect_golden;

Bytes with_call_header(const Bytes& behind) {
  Bytes body(call_header_bytes);
  write_call_header(body.data(),
                    {.token = 0x0102030405060708, .deadline_ms = 1000, .hops_left = 64, .fanout_left = 1024});
  body.insert(body.end(), behind.begin(), behind.end());
  return body;
}

Bytes code_of(const Bundle& bundle) {
  Bytes body;
  append_code(body, {.id = bundle.id(), .carried = bundle.carried(), .bundle_size = 0}, bundle.bytes());
  return body;
}

TEST(Golden, bundle_with_four_slices) { expect_golden("bundle/four_slices.ifunc", testing::four_slices().bytes()); }

TEST(Golden, bundle_with_bundled_ifunc) { expect_golden("bundle/with_bundled.ifunc", testing::with_bundled().bytes()); }

TEST(Golden, bundle_of_a_library) { expect_golden("bundle/library.ifunc", testing::a_library().bytes()); }

TEST(Golden, bundle_of_a_librarys_user) {
  expect_golden("bundle/librarys_user.ifunc", testing::a_librarys_user().bytes());
}

TEST(Golden, bundle_of_concurrent_code) {
  expect_golden("bundle/concurrent.ifunc", testing::concurrent_code().bytes());
}

TEST(Golden, the_bundle_file_reads_as_what_it_was_made_of) {
  const auto file = read_file(std::filesystem::path(TC_GOLDEN_DIR) / "bundle/four_slices.ifunc", 1 << 20);
  ASSERT_TRUE(file) << file.error().message;
  const auto bundle = Bundle::read(*file);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->id(), testing::four_slices().id());
  EXPECT_EQ(bundle->unpack(0), testing::bytes_of(std::string(40, 'B')));
}

TEST(Golden, call) { expect_golden("frame/call.bin", make_frame(Kind::call, 0, 5, as_bytes("p"))); }

TEST(Golden, call_with_call_header) {
  const auto body = with_call_header(testing::bytes_of("payload"));
  expect_golden("frame/call_header.bin", make_frame(Kind::call, flag_call_header, 5, body));
}

TEST(Golden, call_with_call_header_and_return_address) {
  auto behind = encode_return_address({.instance = 0x1112131415161718, .node_id = 3, .address = "10.0.0.3:4711"});
  Writer(behind).bytes(as_bytes("payload"));
  expect_golden("frame/call_return_address.bin",
                make_frame(Kind::call, flag_call_header | flag_return_address, 5, with_call_header(behind)));
}

TEST(Golden, call_with_code) {
  auto behind = code_of(testing::four_slices());
  Writer(behind).bytes(as_bytes("payload"));
  expect_golden("frame/call_code.bin", make_frame(Kind::call_code, flag_call_header, 6, with_call_header(behind)));
}

TEST(Golden, code_on_behalf_of_two) {
  Bytes body;
  std::vector<Chain::Key> keys(2);
  keys[0].fill(std::byte{0xaa});
  keys[1].fill(std::byte{0xbb});
  append_code(body, {ContentId::of(as_bytes("a manifest")), 3, 0, Chain(std::move(keys))}, as_bytes("a bundle"));
  expect_golden("frame/code_on_behalf.bin", make_frame(Kind::code, 0, 6, body));
}

TEST(Golden, need_for_another) {
  const auto id = testing::four_slices().id();
  const auto question = encode_need({.id = id, .triple = "riscv64-unknown-linux-gnu"});
  expect_golden("frame/need_for_another.bin", make_frame(Kind::need, flag_for_another, 6, question));
  Bytes none;
  append_code(none, {id, 0, 0}, {});
  expect_golden("frame/code_for_another_none.bin", make_frame(Kind::code, flag_for_another, 6, none));
}

TEST(Golden, need) {
  const auto body = encode_need({.id = testing::four_slices().id(), .triple = std::string(testing::arm)});
  expect_golden("frame/need.bin", make_frame(Kind::need, 0, 6, body));
}

TEST(Golden, code) { expect_golden("frame/code.bin", make_frame(Kind::code, 0, 6, code_of(testing::four_slices()))); }

TEST(Golden, known) { expect_golden("frame/known.bin", make_frame(Kind::known, 0, 6, {})); }

TEST(Golden, reply) {
  const auto answer = testing::bytes_of("answer");
  const auto body = encode_reply({.token = 0x0102030405060708, .node_id = 2, .bytes = answer});
  expect_golden("frame/reply.bin", make_frame(Kind::reply, 0, 0, body));
}

TEST(Golden, reply_of_a_failed_call) {
  const auto body = encode_reply({.token = 0x0102030405060708,
                                  .status = TC_ERR_IFUNC,
                                  .code = -7,
                                  .node_id = 2,
                                  .message = "ifunc 'golden' failed at node 2: no such row"});
  expect_golden("frame/reply_failed.bin", make_frame(Kind::reply, 0, 0, body));
}

TEST(Golden, barriers) {
  expect_golden("frame/barrier_ask.bin", make_frame(Kind::barrier, 0, barrier_ask, encode_barrier(17)));
  expect_golden("frame/barrier_answer.bin", make_frame(Kind::barrier, 0, barrier_answer, encode_barrier(17)));
}

TEST(Golden, cancel) {
  expect_golden("frame/cancel.bin", make_frame(Kind::cancel, 0, 0, encode_cancel(0x0102030405060708)));
}

TEST(Golden, disconnect) {
  const auto body = encode_disconnect({.status = TC_ERR_VERSION, .reason = "protocol 2 when this node speaks 1"});
  expect_golden("frame/disconnect.bin", make_frame(Kind::disconnect, 0, 0, body));
}

TEST(Golden, hello) {
  const auto body = encode_hello({.protocol = 4,
                                  .abi = 1,
                                  .instance = 0x1112131415161718,
                                  .node_id = 2,
                                  .max_message = 1 << 20,
                                  .name = "two",
                                  .address = "10.0.0.2:4711",
                                  .triple = std::string(testing::x86),
                                  .cpu = "x86-64-v3"});
  expect_golden("hello.bin", body);
}

TEST(Golden, fragment) {
  expect_golden("frame/fragment.bin", make_frame(Kind::fragment, 0, 0, as_bytes("a piece of 16 B.")));
  expect_golden("frame/fragment_last.bin", make_frame(Kind::fragment, 0, 1, as_bytes("the end")));
}

TEST(Golden, cluster_events) {
  const auto event = [](uint32_t what, const Bytes& body) { return make_frame(Kind::cluster_event, 0, what, body); };
  expect_golden("frame/event_gone.bin",
                event(event_gone, encode_gone({0x1122334455667788, 0x99aabbccddeeff00, 3, "drive3", "it was killed"})));
  expect_golden("frame/event_marker.bin",
                event(event_marker, encode_marker({0x1122334455667788, 7, marker_from_child})));
  expect_golden("frame/event_report.bin",
                event(event_report, encode_report({0x1122334455667788, 7, true, {1, 0x0102030405060708}})));
}

TEST(Golden, compiling_for_others) {
  const auto bundle = testing::four_slices();
  const auto bytes = bundle.bytes_for(4);
  CompileQuestion question;
  question.token = 0x0102030405060708;
  question.limit_ms = 10'000;
  question.triple = testing::arm;
  question.cpu = "generic";
  question.features = "+lse,+sve";
  question.head = {bundle.id(), 4, 0};
  question.bundle = bytes;
  const auto frame = [](uint32_t what, const Bytes& body) { return make_frame(Kind::compile, 0, what, body); };
  expect_golden("frame/compile_question.bin", frame(compile_question, encode_compile_question(question)));
  expect_golden("frame/compile_answer.bin",
                frame(compile_answer, encode_compile_answer({question.token, TC_OK, "", as_bytes("an object")})));
  expect_golden(
      "frame/compile_refused.bin",
      frame(compile_answer, encode_compile_answer({question.token, TC_ERR_DENIED, "node 2 compiles for nobody", {}})));
}

TEST(Golden, statistics) {
  const auto frame = [](uint32_t what, const Bytes& body) { return make_frame(Kind::statistics, 0, what, body); };
  Times times;
  times.add(1'000'000);
  times.add(300, 2);
  const NodeReport report{.name = "two",
                          .version = "0.1.0",
                          .running = "golden",
                          .node_id = 2,
                          .uptime_ns = 1'500'000'000,
                          .is_draining = true,
                          .numbers = {{"executed", 7}, {"code-bytes", 0x0102030405060708}},
                          .failures = {{"denied", 3}},
                          .times = {{"load", times}},
                          .ifuncs = {{"golden", 7, 1, times, times}},
                          .links = {{"client one", "tcp", 7, 1024, 2048, 0}}};
  expect_golden("frame/statistics_question.bin", frame(statistics_question, {}));
  expect_golden("frame/statistics_answer.bin", frame(statistics_answer, encode_statistics_answer({.report = report})));
  expect_golden("frame/statistics_refused.bin",
                frame(statistics_answer,
                      encode_statistics_answer({.status = TC_ERR_DENIED, .message = "node 2: not for this peer"})));
}

TEST(Golden, pad) { expect_golden("frame/pad.bin", make_frame(Kind::pad, 0, 0, Bytes(24))); }

}  // namespace
}  // namespace tc
