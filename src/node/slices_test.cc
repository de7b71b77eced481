// SPDX-License-Identifier: Apache-2.0
//
// Slices of code: for several kinds of processors, and malformed ones.
#include <elf.h>

#include <functional>
#include <map>

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using wire::Kind;

// ---- Nodes that pretend to be of several kinds of processors
//
// Each says that it is of another kind, and runs only objects for that kind: this machine's code in disguise.

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
  const auto built = load_bundle(name);
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

class Slices : public ::testing::Test, protected Cluster {
 protected:
  void SetUp() override {
    if (TargetTriple::host().arch != Arch::x86_64) GTEST_SKIP() << "the disguises are made from x86-64 objects";
  }

  void make_nodes(const std::vector<const char*>& kinds) {
    Cluster::make_nodes(static_cast<uint32_t>(kinds.size()),
                        [&](Config& config) { config.code.triple = triple(kinds[config.id]); });
  }
  static uint64_t asked(Node& node) { return node.stat("slice-requests").value(); }

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
    ASSERT_TRUE(run_until(raw, [&] { return raw.peer.has_value(); }));
  }
  bool run_until(RawPeer& raw, const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] {
      raw.progress();
      for (auto& node : nodes) node->wait(Deadline::after_ms(0));
    });
  }
  // Sends `travel` with the slice for nodes[0], which wants to forward it to nodes[1], and returns what that asks for.
  wire::Need send_and_be_asked(RawPeer& raw, const Bundle& bundle) {
    raw.send(wire::Kind::call_code, wire::flag_call_header, 0,
             call_header(55) + section_for(bundle, arm) + as_bytes(travel_payload(1)));
    EXPECT_TRUE(run_until(raw, [&] { return raw.find(wire::Kind::need) != nullptr; }));
    const auto* need = raw.find(wire::Kind::need);
    if (need == nullptr) return {};
    EXPECT_EQ(need->header.flags, wire::flag_for_another);
    EXPECT_EQ(need->header.number, 0u);
    return wire::decode_need(need->body).value();
  }
};

// ---- Code that is forwarded from one kind of processor to another

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
  const auto message = travel(*client, renamed(for_three("travel"), "other"), 1);
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
    ASSERT_EQ(test::call(*first, *test::connect(*first, "n0"), *message(*first, append))->status, TC_OK);
    first.reset();
  }
  const auto spread = message(*second, for_three("spread"), "y");
  auto* link = test::connect(*second, "n0");
  auto answer = test::call(*second, *link, *spread);
  // The link to node 1 may have to greet first; then the refusal is of the injected call alone.
  const auto deadline = Deadline::after_ms(10'000);
  while (answer->status == TC_OK && !deadline.passed()) answer = test::call(*second, *link, *spread);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_NO_SLICE);
}

// ---- Requests for the slice of another kind of processor, with a source or a target made by hand

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
  EXPECT_TRUE(run_until(raw, [&] { return nodes[1]->stat("executed").value() == 1; }));
}

TEST_F(Slices, a_send_behind_a_call_that_waits_is_told_at_the_next_flush_why_it_did_not_leave) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  auto* const link = nodes[0]->links().find_or_reach("n1").value();
  const auto message = test::message(*nodes[0], for_three("append", riscv));
  ASSERT_TRUE(nodes[0]->send(*link, *message, false, Deadline::after_ms(0)));
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, riscv));
  ASSERT_TRUE(run_until(raw, [&] { return nodes[1]->stat("executed").value() == 1; }));
  const Background other(*nodes[1]);
  const auto flushed = link->flush(Deadline::after_ms(8000));
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, TC_ERR_NO_SLICE) << flushed.error().message;
  EXPECT_TRUE(link->flush(Deadline::after_ms(8000))) << "it is told once";
}

TEST_F(Slices, a_source_that_has_no_such_slice_fails_the_call_with_its_name) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, nullptr));
  ASSERT_TRUE(run_until(raw, [&] { return raw.reply_to(55).has_value(); }));
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
  ASSERT_TRUE(run_until(raw, [&] { return raw.reply_to(55).has_value(); }));
  EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_NO_SLICE);
  EXPECT_FALSE(raw.lost);
}

TEST_F(Slices, a_source_that_dies_while_it_is_asked_fails_what_waited) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  (void)send_and_be_asked(raw, for_three("travel"));
  raw.vanish();
  EXPECT_TRUE(run_until(raw, [&] { return nodes[0]->stat("failures").value() == 1; }));
}

// Calls that nodes[0] cannot forward yet, 100 ms before their deadline where they have one. The clock stands.
class CallsThatCannotLeaveYet : public Slices {
 protected:
  // Calls may run on other threads.
  bool drive(size_t driven, const std::function<bool()>& done) {
    const auto ends_at = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < ends_at) {
      std::this_thread::yield();
      raw.progress();
      for (size_t i = 0; i < driven; ++i) nodes[i]->wait(Deadline::after_ms(0));
    }
    return done();
  }
  bool drive_all(const std::function<bool()>& done) { return drive(nodes.size(), done); }
  void send(ByteView code) {
    raw.send(Kind::call_code, wire::flag_call_header, 0,
             call_header(55, deadline_ms) + code + as_bytes(travel_payload(1)));
  }
  // nodes[1] can be sent the code `wait_ms` after the call came.
  void wait_for_slices(uint32_t wait_ms) {
    make_nodes({arm, riscv});
    join(raw);
    clock.emplace();
    const auto bundle = for_three("travel");
    send(section_for(bundle, arm));
    ASSERT_TRUE(drive_all([&] { return raw.find(Kind::need) != nullptr; }));
    test::let_pass(std::chrono::milliseconds(wait_ms));
    raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, riscv));
  }
  // nodes[1] answers to the greeting after that time.
  void wait_for_greeting(uint32_t wait_ms) {
    make_nodes({arm, riscv});
    join(raw);
    clock.emplace();
    const auto bundle = for_three("travel");
    const auto bytes = bundle.bytes();
    Bytes section;
    wire::append_code(section, {bundle.id(), bundle.carried(), static_cast<uint32_t>(bytes.size())}, bytes);
    send(section);
    ASSERT_TRUE(drive(1, [&] { return nodes[0]->stat("executed").value() == 1; }));
    test::let_pass(std::chrono::milliseconds(wait_ms));
  }
  void expect_sent() {
    EXPECT_TRUE(drive_all([&] { return nodes[1]->stat("executed").value() == 1; }));
    ASSERT_TRUE(drive_all([&] { return raw.reply_to(55).has_value(); }));
    EXPECT_EQ(raw.reply_to(55)->status, TC_OK) << raw.reply_to(55)->message;
  }
  void expect_too_late(const std::string& why) {
    ASSERT_TRUE(drive_all([&] { return raw.reply_to(55).has_value(); }));
    EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_TIMEOUT);
    EXPECT_THAT(raw.reply_to(55)->message, HasSubstr(why));
    EXPECT_EQ(nodes[1]->stat("executed").value(), 0u);
  }

  uint32_t deadline_ms = 100;
  RawPeer raw{net.network};
  std::optional<StoppedClock> clock;
};

TEST_F(CallsThatCannotLeaveYet, leave_when_their_slices_come_as_the_deadline_ends) {
  wait_for_slices(deadline_ms);
  expect_sent();
}

TEST_F(CallsThatCannotLeaveYet, are_refused_when_their_slices_come_later_and_are_told_for_what_they_waited) {
  wait_for_slices(deadline_ms + 1);
  expect_too_late("could be sent its code after 101 ms when the call's deadline was 100 ms");
}

TEST_F(CallsThatCannotLeaveYet, have_all_the_time_when_they_have_no_deadline) {
  deadline_ms = 0;
  wait_for_slices(5'000);
  expect_sent();
}

TEST_F(CallsThatCannotLeaveYet, leave_when_the_peer_answers_as_the_deadline_ends) {
  wait_for_greeting(deadline_ms);
  expect_sent();
}

TEST_F(CallsThatCannotLeaveYet, are_refused_when_the_peer_answers_later) {
  wait_for_greeting(deadline_ms + 1);
  expect_too_late("answered after 101 ms when the call's deadline was 100 ms");
}

// A node that forwarded code to one kind of processor and is asked for the slice of another: it asks its own source once.
TEST_F(Slices, a_slice_that_came_for_another_is_at_hand_for_the_next_that_asks) {
  RawPeer raw(net.network);  // a node of the cluster that forwards what it gets
  raw.says.triple = arm;
  raw.listen("raw");
  nodes.push_back(net.make(0, [](Config& config) {
    config.cluster = {"n0", "raw"};
    config.code.triple = triple(native);
  }));
  auto client = net.make(99);
  const auto bundle = for_three("travel");
  const auto message = travel(*client, bundle, 1);
  Link* link = nullptr;
  {
    const Background running(*nodes[0]);
    link = test::connect(*client, "n0");
  }
  const auto future = client->call(*link, *message, 0, Deadline::after_ms(1000)).value();
  const auto run_both_until = [&](const std::function<bool()>& done) {
    return run_until(raw, [&] { return client->poll(), done(); });
  };
  ASSERT_TRUE(run_both_until([&] { return raw.find(Kind::call_code) != nullptr; }));
  EXPECT_EQ(asked(*nodes[0]), 1u);
  for (int again = 0; again < 2; ++again) {
    raw.send(Kind::need, wire::flag_for_another, 0, wire::encode_need({bundle.id(), riscv}));
    ASSERT_TRUE(run_both_until([&] { return raw.find(Kind::code) != nullptr; }));
    EXPECT_EQ(raw.find(Kind::code)->body, section_for(bundle, riscv));
    raw.frames.clear();
    EXPECT_EQ(asked(*nodes[0]), 2u);
  }
}

TEST_F(Slices, slices_that_nobody_asked_for_break_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(for_three("travel"), riscv));
  ASSERT_TRUE(run_until(raw, [&] { return raw.bye.has_value(); }));
  EXPECT_THAT(raw.bye->reason, HasSubstr("which nobody asked for"));
}

TEST_F(Slices, a_question_for_code_that_was_never_sent_breaks_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  raw.send(Kind::need, wire::flag_for_another, 3, wire::encode_need({for_three("travel").id(), riscv}));
  ASSERT_TRUE(run_until(raw, [&] { return raw.bye.has_value(); }));
  EXPECT_THAT(raw.bye->reason, HasSubstr("code number 3"));
}

// ---- Bundles whose slices are not what they say
//
// The call fails at its sender with the reason, the name of the ifunc and of the node, and both nodes go on. Each case
// spoils the machine code of a working ifunc in one place.

// A relocatable image, taken apart just enough to be spoilt.
class Image {
 public:
  explicit Image(Bytes& file) : file_(file) {}

  Elf64_Ehdr& header() { return at<Elf64_Ehdr>(0); }
  Elf64_Phdr& segment(uint32_t type) {
    for (uint64_t i = 0; i < header().e_phnum; ++i)
      if (auto& found = at<Elf64_Phdr>(header().e_phoff + i * sizeof(Elf64_Phdr)); found.p_type == type) return found;
    ADD_FAILURE() << "no segment of type " << type;
    return at<Elf64_Phdr>(0);
  }
  Elf64_Dyn& dynamic(int64_t tag) {
    const auto& table = segment(PT_DYNAMIC);
    for (uint64_t i = 0; i < table.p_filesz; i += sizeof(Elf64_Dyn))
      if (auto& found = at<Elf64_Dyn>(table.p_offset + i); found.d_tag == tag) return found;
    ADD_FAILURE() << "no dynamic entry " << tag;
    return at<Elf64_Dyn>(0);
  }
  Elf64_Rela& first_relocation() {
    const uint64_t address = dynamic(DT_RELA).d_un.d_ptr;
    for (uint64_t i = 0; i < header().e_phnum; ++i) {
      const auto& load = at<Elf64_Phdr>(header().e_phoff + i * sizeof(Elf64_Phdr));
      if (load.p_type == PT_LOAD && address >= load.p_vaddr && address < load.p_vaddr + load.p_filesz)
        return at<Elf64_Rela>(address - load.p_vaddr + load.p_offset);
    }
    ADD_FAILURE() << "no relocations";
    return at<Elf64_Rela>(0);
  }

 private:
  template <class T>
  T& at(uint64_t offset) {
    return record_in<T>(file_, offset);
  }
  Bytes& file_;
};

struct Spoilt {
  const char* name;
  std::function<void(Image)> spoil;
  const char* reason;
};
void PrintTo(const Spoilt& spoilt, std::ostream* out) { *out << spoilt.name; }

class BadSlice : public testing::TestWithParam<Spoilt> {};

uint16_t other_machine() { return TargetTriple::host().arch == Arch::aarch64 ? EM_X86_64 : EM_AARCH64; }

INSTANTIATE_TEST_SUITE_P(
    Objects, BadSlice,
    testing::Values(
        Spoilt{"of_another_machine", [](Image i) { i.header().e_machine = other_machine(); },
               "object is for ELF machine"},
        Spoilt{"of_32_bits", [](Image i) { i.header().e_ident[EI_CLASS] = ELFCLASS32; }, "64-bit, little-endian"},
        Spoilt{"of_the_wrong_endian", [](Image i) { i.header().e_ident[EI_DATA] = ELFDATA2MSB; },
               "64-bit, little-endian"},
        Spoilt{"not_linked", [](Image i) { i.header().e_type = ET_REL; }, "when a linked image"},
        Spoilt{"with_an_executable_stack",
               [](Image i) {
                 auto& segment = i.segment(PT_DYNAMIC);
                 segment.p_type = PT_GNU_STACK;
                 segment.p_flags = PF_R | PF_W | PF_X;
               },
               "executable stack"},
        Spoilt{"with_thread_locals", [](Image i) { i.segment(PT_DYNAMIC).p_type = PT_TLS; }, "thread-local"},
        Spoilt{"with_writable_code", [](Image i) { i.segment(PT_LOAD).p_flags = PF_R | PF_W | PF_X; }, "with flags 7"},
        Spoilt{"with_a_relocation_out_of_range", [](Image i) { i.first_relocation().r_offset = 0x10; },
               "lies outside the data half"},
        Spoilt{"with_a_relocation_of_unknown_kind",
               [](Image i) { i.first_relocation().r_info = ELF64_R_INFO(0, 0x3fff); }, "relocation of type 16383"}),
    [](const auto& info) { return info.param.name; });

TEST_P(BadSlice, is_refused_at_the_sender_by_name_and_both_go_on) {
  const auto built = load_bundle("echo");
  const auto found = built.find(SliceRole::target, SliceForm::object, TargetTriple::host());
  ASSERT_TRUE(found);
  auto manifest = built.manifest();
  auto object = built.unpack(*found).value();
  GetParam().spoil(Image(object));
  Slice slice = manifest.slices[*found];
  slice.compressed = false;
  slice.unpacked_size = static_cast<uint32_t>(object.size());
  manifest.slices = {slice};
  const auto bundle = Bundle::pack(std::move(manifest), {std::move(object)});
  ASSERT_TRUE(bundle) << bundle.error().message;

  Net net;
  auto target = net.make(1);
  auto client = net.make(2);
  const Background running(*target);
  auto* link = test::connect(*client, "n1");
  const auto answer = test::call(*client, *link, *test::message(*client, *bundle));
  EXPECT_NE(answer->status, TC_OK);
  EXPECT_THAT(answer->message, AllOf(HasSubstr("node 1"), HasSubstr("'echo'"), HasSubstr(GetParam().reason)));
  EXPECT_EQ(test::call(*client, *link, *test::message(*client, "append", "x"))->status, TC_ERR_IFUNC)
      << "the next ifunc runs, and misses its data";
}

}  // namespace
}  // namespace tc::node::test
