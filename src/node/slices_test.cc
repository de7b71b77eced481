// SPDX-License-Identifier: Apache-2.0
//
// Code that goes on from one kind of processor to another. The nodes pretend: each says that it is of another kind and
// runs only objects for that kind, which are this machine's code in disguise.
#include <elf.h>

#include <map>

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::Background;
using test::RawPeer;
using test::Travel;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

constexpr const char* native = "x86_64-unknown-linux-gnu";
constexpr const char* arm = "aarch64-unknown-linux-gnu";
constexpr const char* riscv = "riscv64-unknown-linux-gnu";

TargetTriple triple(const char* text) { return TargetTriple::parse(text).value(); }

template <class T>
T& record_in(Bytes& file, uint64_t offset) {
  EXPECT_LE(offset + sizeof(T), file.size());
  return *reinterpret_cast<T*>(file.data() + offset);
}

// An x86-64 object that says it is for another machine, also by the names of its relocations.
Bytes disguised(Bytes object, Arch as) {
  const std::map<uint32_t, uint32_t> names =
      as == Arch::aarch64 ? std::map<uint32_t, uint32_t>{{R_X86_64_RELATIVE, R_AARCH64_RELATIVE},
                                                         {R_X86_64_64, R_AARCH64_ABS64},
                                                         {R_X86_64_GLOB_DAT, R_AARCH64_GLOB_DAT},
                                                         {R_X86_64_JUMP_SLOT, R_AARCH64_JUMP_SLOT}}
                          : std::map<uint32_t, uint32_t>{{R_X86_64_RELATIVE, R_RISCV_RELATIVE},
                                                         {R_X86_64_64, R_RISCV_64},
                                                         {R_X86_64_GLOB_DAT, R_RISCV_64},
                                                         {R_X86_64_JUMP_SLOT, R_RISCV_JUMP_SLOT}};
  auto& header = record_in<Elf64_Ehdr>(object, 0);
  header.e_machine = as == Arch::aarch64 ? EM_AARCH64 : EM_RISCV;
  std::vector<Elf64_Phdr> loads;
  std::map<int64_t, uint64_t> dynamic;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = record_in<Elf64_Phdr>(object, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD) loads.push_back(segment);
    for (uint64_t at = 0; segment.p_type == PT_DYNAMIC && at < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto& entry = record_in<Elf64_Dyn>(object, segment.p_offset + at);
      dynamic[entry.d_tag] = entry.d_un.d_val;
    }
  }
  const auto rename = [&](int64_t table, int64_t size) {
    for (uint64_t at = dynamic[table], end = at + dynamic[size]; at < end; at += sizeof(Elf64_Rela))
      for (const auto& load : loads) {
        if (at < load.p_vaddr || at >= load.p_vaddr + load.p_filesz) continue;
        auto& relocation = record_in<Elf64_Rela>(object, at - load.p_vaddr + load.p_offset);
        relocation.r_info = ELF64_R_INFO(ELF64_R_SYM(relocation.r_info),
                                         names.at(static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info))));
      }
  };
  rename(DT_RELA, DT_RELASZ);
  rename(DT_JMPREL, DT_PLTRELSZ);
  return object;
}

// The ifunc with an object for each of the three; without those of `left_out`.
Bundle for_three(const std::string& name, const std::string& left_out = "") {
  const auto built = test::load_bundle(name);
  const auto found = built.find(SliceRole::target, SliceForm::object, triple(native));
  EXPECT_TRUE(found);
  auto manifest = built.manifest();
  const auto object = built.unpack(*found).value();
  manifest.slices.clear();
  std::vector<Bytes> stored;
  for (const char* text : {native, arm, riscv}) {
    if (text == left_out) continue;
    auto bytes = text == native ? object : disguised(object, triple(text).arch);
    Slice slice;
    slice.triple = triple(text);
    slice.form = SliceForm::object;
    slice.unpacked_size = static_cast<uint32_t>(bytes.size());
    manifest.slices.push_back(slice);
    stored.push_back(std::move(bytes));
  }
  auto bundle = Bundle::pack(std::move(manifest), std::move(stored));
  EXPECT_TRUE(bundle) << bundle.error().message;
  return std::move(*bundle);
}

class Slices : public testing::Test {
 protected:
  void SetUp() override {
    if (TargetTriple::host().arch != Arch::x86_64) GTEST_SKIP() << "the disguises are made from x86-64 objects";
  }

  void make_nodes(const std::vector<const char*>& kinds) {
    for (uint32_t id = 0; id < kinds.size(); ++id)
      nodes.push_back(net.make(id, [&](Config& config) {
        for (uint32_t other = 0; other < kinds.size(); ++other) config.cluster.push_back("n" + std::to_string(other));
        config.code.triple = triple(kinds[id]);
      }));
  }
  void start() {
    for (auto& node : nodes) running.push_back(std::make_unique<Background>(*node));
  }
  void stop() { running.clear(); }
  static uint64_t asked(Node& node) { return node.stat("slice-requests").value(); }

  static std::unique_ptr<source::Message> travel(Node& client, const Bundle& bundle, uint32_t hops) {
    Travel payload;
    payload.hops_to_go = hops;
    return source::Message::create(client.register_bundle(bundle).value(), &payload, sizeof payload, 1 << 20).value();
  }
  static Travel result_of(const Future& future) {
    Travel payload;
    if (future.bytes.size() == sizeof payload) std::memcpy(&payload, future.bytes.data(), sizeof payload);
    return payload;
  }

  // Only the slices for `kind`, as a careful source sends them.
  static Bytes section_for(const Bundle& bundle, const char* kind) {
    const auto which = kind != nullptr ? bundle.useful_for(triple(kind)) : 0;
    const auto bytes = which != 0 ? bundle.bytes_for(which) : Bytes{};
    Bytes out;
    wire::append_code(out, {bundle.id(), which, static_cast<uint32_t>(bytes.size())}, bytes);
    return out;
  }

  // A source made by hand, which greeted nodes[0].
  void join(RawPeer& raw) {
    raw.listen("raw");
    auto hello = RawPeer::hello();
    hello.address = "raw";
    raw.connect("n0", wire::encode_hello(hello));
    ASSERT_TRUE(pump(raw, [&] { return raw.peer.has_value(); }));
  }
  bool pump(RawPeer& raw, const std::function<bool()>& done) {
    const auto deadline = Deadline::after_ms(5000);
    while (!done()) {
      if (deadline.passed()) return false;
      raw.progress();
      for (auto& node : nodes) node->wait(Deadline::after_ms(0));
    }
    return true;
  }
  // Sends `travel` with the slice for nodes[0], which wants to forward it to nodes[1], and returns what that asks for.
  wire::Need send_and_be_asked(RawPeer& raw, const Bundle& bundle) {
    Travel payload;
    payload.hops_to_go = 1;
    const std::string_view bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
    raw.send(Kind::call_code, wire::flag_token, 0, test::ticket(55) + section_for(bundle, arm) + as_bytes(bytes));
    EXPECT_TRUE(pump(raw, [&] { return raw.find(Kind::need) != nullptr; }));
    const auto* need = raw.find(Kind::need);
    if (need == nullptr) return {};
    EXPECT_EQ(need->header.flags, wire::flag_for_another);
    EXPECT_EQ(need->header.number, 0u);
    return wire::decode_need(need->body).value();
  }

  test::Net net;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Background>> running;
};

TEST_F(Slices, code_forwards_itself_round_a_ring_of_three_kinds_of_processors) {
  make_nodes({native, arm, riscv});
  auto client = net.make(99);
  start();
  auto* link = test::connect(*client, "n0");
  for (int lap = 0; lap < 3; ++lap) {
    const auto answer = test::call(*client, *link, *travel(*client, for_three("travel"), 8));
    ASSERT_EQ(answer->status, TC_OK) << answer->message;
    const auto result = result_of(*answer);
    ASSERT_EQ(result.visited, 9u);
    for (uint32_t i = 0; i < 9; ++i) EXPECT_EQ(result.nodes[i], i % 3);
  }
  stop();
  EXPECT_EQ(asked(*nodes[0]), 2u) << "for aarch64, and for node 1 for riscv64; never again";
  EXPECT_EQ(asked(*nodes[1]), 2u) << "for riscv64, and for node 2 for x86-64";
  EXPECT_EQ(asked(*nodes[2]), 1u) << "for x86-64";
}

TEST_F(Slices, a_question_goes_back_along_the_way_that_the_code_came) {
  make_nodes({arm, arm, arm, riscv});
  auto client = net.make(99);
  start();
  const auto answer = test::call(*client, *test::connect(*client, "n0"), *travel(*client, for_three("travel"), 3));
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(result_of(*answer).visited, 4u);
  stop();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(asked(*nodes[i]), 1u) << "node " << i;
}

TEST_F(Slices, many_calls_that_wait_for_one_slice_arrive_in_order_after_one_question) {
  make_nodes({arm, riscv});
  auto client = net.make(99);
  start();
  auto* link = test::connect(*client, "n0");
  std::vector<std::shared_ptr<Future>> calls;
  const auto message = travel(*client, for_three("travel"), 1);
  for (int i = 0; i < 50; ++i) calls.push_back(client->call(*link, *message, 5000, Deadline::after_ms(5000)).value());
  for (auto& call : calls) {
    client->poll_until(Deadline::after_ms(6000), [&] { return call->ready.load(); });
    EXPECT_EQ(call->status, TC_OK) << call->message;
  }
  stop();
  EXPECT_EQ(asked(*nodes[0]), 1u);
}

TEST_F(Slices, calls_of_new_code_wait_for_its_slice_on_links_that_are_up_already) {
  make_nodes({arm, riscv});
  auto client = net.make(99);
  start();
  auto* link = test::connect(*client, "n0");
  EXPECT_EQ(test::call(*client, *link, *travel(*client, for_three("travel"), 1))->status, TC_OK);
  const auto message = travel(*client, test::renamed(for_three("travel"), "other"), 1);
  std::vector<std::shared_ptr<Future>> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(client->call(*link, *message, 5000, Deadline::after_ms(5000)).value());
  for (auto& call : calls) {
    client->poll_until(Deadline::after_ms(6000), [&] { return call->ready.load(); });
    EXPECT_EQ(call->status, TC_OK) << call->message;
    EXPECT_EQ(result_of(*call).visited, 2u);
  }
  stop();
  EXPECT_EQ(asked(*nodes[0]), 2u) << "once for each code";
}

TEST_F(Slices, a_node_that_registered_the_ifunc_itself_asks_nobody) {
  make_nodes({arm, riscv});
  ASSERT_TRUE(nodes[0]->register_bundle(for_three("travel")));
  auto client = net.make(99);
  start();
  const auto answer = test::call(*client, *test::connect(*client, "n0"), *travel(*client, for_three("travel"), 1));
  EXPECT_EQ(answer->status, TC_OK) << answer->message;
  stop();
  EXPECT_EQ(asked(*nodes[0]), 0u);
}

TEST_F(Slices, a_kind_that_the_ifunc_was_never_built_for_is_refused_by_name_without_a_question) {
  make_nodes({arm, riscv});
  auto client = net.make(99);
  start();
  const auto answer =
      test::call(*client, *test::connect(*client, "n0"), *travel(*client, for_three("travel", riscv), 1));
  EXPECT_EQ(answer->status, TC_ERR_NO_SLICE);
  EXPECT_THAT(answer->message, HasSubstr("build it with --target riscv64-unknown-linux-gnu"));
  stop();
  EXPECT_EQ(asked(*nodes[0]), 0u);
}

TEST_F(Slices, code_whose_sender_has_left_cannot_go_on_and_says_so_at_once) {
  make_nodes({arm, riscv});
  auto first = net.make(98);
  auto second = net.make(99);
  unsigned char text[16] = {};
  nodes[0]->expose("text", text, sizeof text);
  start();
  const auto append = for_three("append");
  {
    char payload = 'x';
    const auto message = source::Message::create(first->register_bundle(append).value(), &payload, 1, 1 << 20).value();
    ASSERT_EQ(test::call(*first, *test::connect(*first, "n0"), *message)->status, TC_OK);
    first.reset();
  }
  char payload = 'y';
  const auto spread =
      source::Message::create(second->register_bundle(for_three("spread")).value(), &payload, 1, 1 << 20).value();
  auto* link = test::connect(*second, "n0");
  auto answer = test::call(*second, *link, *spread);
  // The link to node 1 may have to greet first; then the refusal is of the injected call alone.
  const auto deadline = Deadline::after_ms(10'000);
  while (answer->status == TC_OK && !deadline.passed()) answer = test::call(*second, *link, *spread);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_NO_SLICE);
}

TEST_F(Slices, the_question_names_code_and_processor_and_its_answer_lets_the_call_go_on) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  const auto need = send_and_be_asked(raw, bundle);
  EXPECT_EQ(need.id, bundle.id());
  EXPECT_EQ(need.triple, riscv);
  EXPECT_EQ(nodes[1]->stat("executed").value(), 0u) << "the call waits";
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, riscv));
  EXPECT_TRUE(pump(raw, [&] { return nodes[1]->stat("executed").value() == 1; }));
}

TEST_F(Slices, a_source_that_has_no_such_slice_fails_the_call_with_its_name) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, nullptr));
  ASSERT_TRUE(pump(raw, [&] { return raw.reply_to(55).has_value(); }));
  EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_NO_SLICE);
  EXPECT_THAT(raw.reply_to(55)->message, HasSubstr("no slice of ifunc 'travel' for riscv64-unknown-linux-gnu"));
  EXPECT_THAT(raw.reply_to(55)->message, HasSubstr("node 7 (raw)"));
}

TEST_F(Slices, a_slice_that_is_not_what_its_hash_says_fails_the_call_and_not_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  auto section = section_for(bundle, riscv);
  section[section.size() - 40] ^= std::byte{1};
  raw.send(Kind::code, wire::flag_for_another, 0, section);
  ASSERT_TRUE(pump(raw, [&] { return raw.reply_to(55).has_value(); }));
  EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_NO_SLICE);
  EXPECT_FALSE(raw.lost);
}

TEST_F(Slices, a_source_that_dies_while_it_is_asked_fails_what_waited) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  (void)send_and_be_asked(raw, for_three("travel"));
  raw.vanish();
  EXPECT_TRUE(pump(raw, [&] { return nodes[0]->stat("failures").value() == 1; }));
}

TEST_F(Slices, slices_that_nobody_asked_for_break_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(for_three("travel"), riscv));
  ASSERT_TRUE(pump(raw, [&] { return raw.bye.has_value(); }));
  EXPECT_THAT(raw.bye->reason, HasSubstr("which nobody asked for"));
}

TEST_F(Slices, a_question_for_code_that_was_never_sent_breaks_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  raw.send(Kind::need, wire::flag_for_another, 3, wire::encode_need({for_three("travel").id(), riscv}));
  ASSERT_TRUE(pump(raw, [&] { return raw.bye.has_value(); }));
  EXPECT_THAT(raw.bye->reason, HasSubstr("code number 3"));
}

}  // namespace
}  // namespace tc::node
