// SPDX-License-Identifier: Apache-2.0
//
// For tests: nodes that pretend to be of several kinds of processors. Each says that it is of another kind and runs only
// objects for that kind, which are this machine's code in disguise.
#pragma once

#include <elf.h>

#include <map>

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {

inline constexpr const char* native = "x86_64-unknown-linux-gnu";
inline constexpr const char* arm = "aarch64-unknown-linux-gnu";
inline constexpr const char* riscv = "riscv64-unknown-linux-gnu";

inline TargetTriple triple(const char* text) { return TargetTriple::parse(text).value(); }

template <class T>
T& record_in(Bytes& file, uint64_t offset) {
  EXPECT_LE(offset + sizeof(T), file.size());
  return *reinterpret_cast<T*>(file.data() + offset);
}

// An x86-64 object that says it is for another machine, also by the names of its relocations.
inline Bytes disguised(Bytes object, Arch as) {
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
inline Bundle for_three(const std::string& name, const std::string& left_out = "") {
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

class Slices : public ::testing::Test {
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
    Travel payload;
    payload.hops_to_go = 1;
    const std::string_view bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
    raw.send(wire::Kind::call_code, wire::flag_call_header, 0,
             call_header(55) + section_for(bundle, arm) + as_bytes(bytes));
    EXPECT_TRUE(run_until(raw, [&] { return raw.find(wire::Kind::need) != nullptr; }));
    const auto* need = raw.find(wire::Kind::need);
    if (need == nullptr) return {};
    EXPECT_EQ(need->header.flags, wire::flag_for_another);
    EXPECT_EQ(need->header.number, 0u);
    return wire::decode_need(need->body).value();
  }

  Net net;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Background>> running;
};

}  // namespace tc::node::test
