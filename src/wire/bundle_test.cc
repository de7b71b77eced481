// SPDX-License-Identifier: Apache-2.0
//
// Bundles as the packer makes them. Malformed ones are in bundle_hostile_test.cc.
#include "wire/bundle.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/bundle_format.h"
#include "wire/object_format.h"
#include "wire/target_triple.h"
#include "wire/testing/bundles.h"
#include "wire/text.h"

namespace tc {
namespace {

using testing::bytes_of;
using testing::four_slices;
using ::testing::HasSubstr;

TargetTriple x86() { return TargetTriple::parse(testing::x86).value(); }
TargetTriple arm() { return TargetTriple::parse(testing::arm).value(); }
TargetTriple riscv() { return TargetTriple::parse("riscv64-linux-gnu").value(); }

TEST(Bundle, what_was_packed_is_read_back) {
  const auto packed = four_slices();
  const auto read = Bundle::read(packed.bytes());
  ASSERT_TRUE(read) << read.error().message;
  const auto& m = read->manifest();
  EXPECT_EQ(m.name, "golden");
  EXPECT_EQ(m.tool, "by hand");
  EXPECT_EQ(m.abi_version, 1);
  EXPECT_EQ(m.payload_alignment_log2, 6);
  EXPECT_TRUE(m.has(entry_main));
  EXPECT_TRUE(m.has(entry_payload_init));
  EXPECT_FALSE(m.has(entry_payload_bound));
  EXPECT_EQ(m.dependencies, std::vector<std::string>{"libsqlite3.so.0"});
  EXPECT_EQ(m.imports, (std::vector<std::string>{"tc_reply", "sqlite3_exec"}));
  ASSERT_EQ(m.slices.size(), 4u);
  EXPECT_EQ(m.slices[1].cpu, "x86-64-v2");
  EXPECT_EQ(m.slices[2].triple.arch, Arch::aarch64);
  EXPECT_EQ(m.slices[3].role, SliceRole::source);
  EXPECT_EQ(read->id(), packed.id());
  EXPECT_EQ(read->bytes(), packed.bytes());
}

TEST(Bundle, slices_are_unpacked_whether_compressed_or_not) {
  const auto bundle = four_slices();
  EXPECT_EQ(bundle.unpack(0), bytes_of(std::string(40, 'B')));
  EXPECT_EQ(bundle.unpack(1), bytes_of("an x86 object"));
  EXPECT_EQ(bundle.unpack(4).error().code, TC_ERR_NOT_FOUND);
}

TEST(Bundle, sizes_and_hashes_are_filled_in_by_the_packer) {
  const auto bundle = four_slices();
  const auto& object = bundle.manifest().slices[1];
  EXPECT_EQ(object.stored_size, 13u);
  EXPECT_EQ(object.unpacked_size, 13u);
  EXPECT_EQ(object.hash, ContentId::of(as_bytes("an x86 object")));
}

TEST(Bundle, the_content_id_changes_with_any_slice) {
  const auto bundle = four_slices();
  auto manifest = bundle.manifest();
  std::vector<Bytes> stored;
  for (size_t i = 0; i < 4; ++i) stored.emplace_back(bundle.stored(i).begin(), bundle.stored(i).end());
  stored[3].back() = std::byte{'!'};
  EXPECT_NE(Bundle::pack(manifest, stored)->id(), bundle.id());
}

TEST(Bundle, that_code_is_concurrent_is_read_back_and_is_part_of_the_content_id) {
  const auto bundle = testing::concurrent_code();
  const auto read = Bundle::read(bundle.bytes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->manifest().has(entry_concurrent));
  EXPECT_FALSE(four_slices().manifest().has(entry_concurrent));
  auto manifest = bundle.manifest();
  manifest.entries = entry_main;
  const auto ordinary = Bundle::pack(manifest, {bytes_of("lookup")});
  ASSERT_TRUE(ordinary) << ordinary.error().message;
  EXPECT_NE(ordinary->id(), bundle.id());
}

TEST(Bundle, names_that_are_empty_or_too_long_are_not_packed) {
  const auto bundle = four_slices();
  std::vector<Bytes> stored;
  for (size_t i = 0; i < 4; ++i) stored.emplace_back(bundle.stored(i).begin(), bundle.stored(i).end());
  for (const auto names : {&Manifest::imports, &Manifest::dependencies})
    for (const auto& name : {std::string(), std::string(UINT16_MAX + 1, 'n')}) {
      auto manifest = bundle.manifest();
      (manifest.*names).push_back(name);
      const auto packed = Bundle::pack(manifest, stored);
      ASSERT_FALSE(packed) << name.size() << " bytes";
      EXPECT_EQ(packed.error().code, TC_ERR_INVALID);
      EXPECT_THAT(packed.error().message, HasSubstr(fmt::format("of {} bytes", name.size())));
    }
}

TEST(Bundle, a_manifest_may_be_as_large_as_its_limit_and_no_larger) {
  const auto bundle = four_slices();
  std::vector<Bytes> stored;
  for (size_t i = 0; i < 4; ++i) stored.emplace_back(bundle.stored(i).begin(), bundle.stored(i).end());
  auto manifest = bundle.manifest();
  manifest.imports.emplace_back();
  const size_t others = bundle_format::encode_manifest(manifest).size();
  manifest.imports.back().assign(BundleLimits::manifest_bytes - others, 'n');
  const auto packed = Bundle::pack(manifest, stored);
  ASSERT_TRUE(packed) << packed.error().message;
  const auto read = Bundle::read(packed->bytes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->manifest().imports.back().size(), BundleLimits::manifest_bytes - others);
  manifest.imports.back() += 'n';
  const auto larger = Bundle::pack(manifest, stored);
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, TC_ERR_TOO_LARGE);
  EXPECT_THAT(larger.error().message, HasSubstr("65537 bytes when at most 65536"));
}

TEST(Text, each_printable_character_is_taken_and_no_other) {
  for (int c = 0; c < 256; ++c) {
    const std::string text = {'a', static_cast<char>(c)};
    EXPECT_EQ(wire::printable(text), c >= ' ' && c <= '~') << c;
    EXPECT_EQ(wire::visible(text), c > ' ' && c <= '~') << c;
  }
}

TEST(Bundle, a_target_finds_the_slice_for_its_cpu) {
  const auto bundle = four_slices();
  EXPECT_EQ(bundle.find(SliceRole::target, SliceForm::object, x86()), 1u);
  EXPECT_EQ(bundle.find(SliceRole::target, SliceForm::bitcode, arm()), 2u);
  EXPECT_EQ(bundle.find(SliceRole::target, SliceForm::object, arm()), std::nullopt);
  EXPECT_EQ(bundle.find(SliceRole::source, SliceForm::object, x86()), 3u);
}

TEST(Bundle, only_slices_that_a_target_can_run_are_sent_to_it) {
  const auto bundle = four_slices();
  EXPECT_EQ(bundle.useful_for(x86()), 0b0011u) << "source-side code stays at home";
  EXPECT_EQ(bundle.useful_for(arm()), 0b0100u);
  EXPECT_EQ(bundle.useful_for(riscv()), 0u);
}

TEST(Bundle, a_bundle_lists_the_processors_that_its_code_for_targets_can_run_on) {
  const auto bundle = four_slices();
  EXPECT_TRUE(bundle.lists(x86()));
  EXPECT_TRUE(bundle.lists(arm()));
  EXPECT_FALSE(bundle.lists(riscv()));
  Manifest m;
  m.name = "home";
  m.entries = entry_main;
  m.slices.push_back({.triple = x86(), .role = SliceRole::source, .form = SliceForm::object});
  m.slices.push_back({.triple = arm(), .role = SliceRole::target, .form = SliceForm::object});
  const auto made = Bundle::pack(m, {bytes_of("for the source"), bytes_of("for targets")});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->lists(x86())) << "code for the source runs nowhere else";
  EXPECT_TRUE(made->lists(arm()));
}

TEST(Bundle, a_bundled_ifunc_goes_wherever_the_code_can_run_and_comes_out_whole) {
  const auto bundle = testing::with_bundled();
  EXPECT_EQ(bundle.useful_for(TargetTriple::parse(testing::x86).value()), 3u);
  EXPECT_EQ(bundle.useful_for(TargetTriple::parse(testing::arm).value()), 0u) << "a bundled ifunc alone is of no use";
  const auto sent = Bundle::read_carried(bundle.bytes_for(3), 3, bundle.id());
  ASSERT_TRUE(sent) << sent.error().message;
  ASSERT_TRUE(sent->has_bundled("golden"));
  EXPECT_FALSE(sent->has_bundled("x86-64-v2"));
  const auto bundled = sent->bundled("golden");
  ASSERT_TRUE(bundled) << bundled.error().message;
  EXPECT_EQ(bundled->id(), testing::four_slices().id());
  EXPECT_EQ(sent->bundled("nobody").error().code, TC_ERR_NOT_FOUND);
}

TEST(Bundle, every_subset_of_slices_travels_and_is_checked_by_itself) {
  const auto whole = four_slices();
  for (uint64_t carried = 0; carried < 16; ++carried) {
    const auto bytes = whole.bytes_for(carried);
    EXPECT_EQ(bytes.size(), whole.size_for(carried));
    const auto part = Bundle::read_carried(bytes, carried, whole.id());
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_EQ(part->id(), whole.id());
    EXPECT_EQ(part->carried(), carried);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(part->unpack(i).has_value(), (carried >> i & 1) != 0);
    EXPECT_EQ(part->bytes(), bytes);
  }
}

TEST(Bundle, a_slice_that_is_not_carried_is_not_found) {
  const auto whole = four_slices();
  const auto part = Bundle::read_carried(whole.bytes_for(0b0100), 0b0100, whole.id()).value();
  EXPECT_EQ(part.find(SliceRole::target, SliceForm::object, x86()), std::nullopt);
  EXPECT_EQ(part.useful_for(x86()), 0u);
  EXPECT_EQ(part.unpack(1).error().message, "slice 1 of 'golden' is not in this copy of the bundle");
}

TEST(Bundle, parts_of_one_bundle_make_it_whole_again) {
  const auto whole = four_slices();
  auto part = Bundle::read_carried(whole.bytes_for(0b0001), 0b0001, whole.id()).value();
  part.merge(Bundle::read_carried(whole.bytes_for(0b1110), 0b1110, whole.id()).value());
  EXPECT_EQ(part.bytes(), whole.bytes());
}

TEST(Bundle, parts_of_different_bundles_do_not_mix) {
  const auto whole = four_slices();
  auto part = Bundle::read_carried(whole.bytes_for(0b0001), 0b0001, whole.id()).value();
  auto manifest = whole.manifest();
  manifest.name = "other";
  std::vector<Bytes> stored;
  for (size_t i = 0; i < 4; ++i) stored.emplace_back(whole.stored(i).begin(), whole.stored(i).end());
  part.merge(Bundle::pack(manifest, stored).value());
  EXPECT_EQ(part.carried(), 0b0001u);
}

TEST(Bundle, sixty_four_slices_are_carried_in_one_word) {
  Manifest m;
  m.name = "many";
  m.slices.assign(64, testing::slice_for(testing::x86, SliceRole::target, SliceForm::object));
  std::vector<Bytes> stored;
  for (int i = 0; i < 64; ++i) stored.push_back(bytes_of(std::to_string(i)));
  const auto bundle = Bundle::pack(m, stored);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->carried(), ~uint64_t{0});
  EXPECT_TRUE(Bundle::read(bundle->bytes()));
  const auto last = uint64_t{1} << 63;
  EXPECT_EQ(Bundle::read_carried(bundle->bytes_for(last), last, bundle->id())->unpack(63), bytes_of("63"));
}

TEST(Compression, gives_back_what_it_got) {
  Bytes text = bytes_of("injected function ");
  for (int i = 0; i < 6; ++i) text.insert(text.end(), text.begin(), text.end());
  const auto packed = compress(text);
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), text.size() / 4);
  EXPECT_EQ(decompress(*packed, text.size()), text);
  EXPECT_EQ(decompress(compress({}).value(), 0), Bytes{});
}

// ---- How signatures travel with a bundle
//
// Whether they hold is tested in src/trust.

CodeSignature signature(unsigned char fill, uint8_t covers = CodeSignature::whole_bundle) {
  CodeSignature made;
  made.covers = covers;
  made.key.fill(std::byte{fill});
  made.signature.fill(std::byte{fill});
  return made;
}

Bundle with(Bundle bundle, const std::vector<CodeSignature>& signatures) {
  for (const auto& each : signatures) EXPECT_TRUE(bundle.add_signature(each));
  return bundle;
}

// A bundle's bytes with a section of signatures behind them that says it has `count`.
Bytes with_section(const Bundle& bundle, uint8_t count, const std::vector<CodeSignature>& signatures) {
  auto bytes = bundle.bytes();
  Writer w(bytes);
  w.u32(0x31534354).u8(count);
  for (const auto& each : signatures) w.u8(each.covers).bytes(each.key).bytes(each.signature);
  return bytes;
}

std::string error_of(const Bytes& bytes) {
  const auto bundle = Bundle::read(bytes);
  return bundle ? "" : bundle.error().message;
}

TEST(BundleSignatures, travel_in_the_file) {
  const auto bundle = with(testing::with_bundled(), {signature(1), signature(2, 1)});
  const auto bytes = bundle.bytes();
  EXPECT_EQ(bytes, with_section(testing::with_bundled(), 2, {signature(1), signature(2, 1)}));
  EXPECT_EQ(bytes.size(), bundle.size_for(bundle.carried()));
  const auto read = Bundle::read(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->signatures(), bundle.signatures());
  EXPECT_EQ(read->id(), testing::with_bundled().id());
}

TEST(BundleSignatures, travel_with_a_part_of_the_slices) {
  const auto bundle = with(testing::four_slices(), {signature(1)});
  const auto bytes = bundle.bytes_for(0b0010);
  EXPECT_EQ(bytes.size(), bundle.size_for(0b0010));
  const auto read = Bundle::read_carried(bytes, 0b0010, bundle.id());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->signatures(), bundle.signatures());
}

TEST(BundleSignatures, are_joined_when_slices_are) {
  auto bundle = with(testing::four_slices(), {signature(1), signature(2)});
  bundle.merge(with(testing::four_slices(), {signature(2), signature(3)}));
  EXPECT_EQ(bundle.signatures(), (std::vector{signature(1), signature(2), signature(3)}));
  bundle.merge(with(testing::a_library(), {signature(4)}));
  EXPECT_EQ(bundle.signatures().size(), 3u) << "those of another bundle are not taken";
}

TEST(BundleSignatures, of_a_bundled_ifunc_are_given_to_it) {
  const auto bundle = with(testing::with_bundled(), {signature(1), signature(2, 1), signature(3, 1)});
  EXPECT_EQ(bundle.bundled("golden")->signatures(), (std::vector{signature(2), signature(3)}));
}

TEST(BundleSignatures, that_a_bundled_ifunc_brings_stay) {
  Manifest m = testing::with_bundled().manifest();
  const auto inner = with(testing::four_slices(), {signature(1)});
  const auto outer = with(Bundle::pack(m, {testing::bytes_of("code"), inner.bytes()}).value(), {signature(2, 1)});
  EXPECT_EQ(outer.bundled("golden")->signatures(), (std::vector{signature(1), signature(2)}));
}

TEST(BundleSignatures, are_not_added_twice_or_without_end) {
  auto bundle = testing::four_slices();
  for (unsigned char i = 0; i < CodeSignature::most; ++i) ASSERT_TRUE(bundle.add_signature(signature(i)));
  EXPECT_TRUE(bundle.add_signature(signature(3)));
  EXPECT_EQ(bundle.signatures().size(), CodeSignature::most);
  EXPECT_EQ(bundle.add_signature(signature(64)).error().code, TC_ERR_LIMIT);
  EXPECT_EQ(Bundle::read(bundle.bytes())->signatures().size(), CodeSignature::most);
}

TEST(BundleSignatures, cover_the_bundle_or_a_bundled_ifunc_and_nothing_else) {
  for (const uint8_t covers : {0, 2, 64, 254}) {
    EXPECT_EQ(testing::with_bundled().add_signature(signature(1, covers)).error().code, TC_ERR_INVALID);
    EXPECT_THAT(error_of(with_section(testing::with_bundled(), 1, {signature(1, covers)})),
                HasSubstr(fmt::format("covers slice {}, which is no bundled ifunc", covers)));
  }
}

TEST(BundleSignatures, a_section_that_lies_about_its_size_is_refused) {
  const auto bundle = testing::four_slices();
  EXPECT_THAT(error_of(with_section(bundle, 0, {})), HasSubstr("has 0 signatures when 1 to 64 are allowed"));
  EXPECT_THAT(error_of(with_section(bundle, 65, {})), HasSubstr("has 65 signatures"));
  EXPECT_NE(error_of(with_section(bundle, 2, {signature(1)})), "");
  EXPECT_NE(error_of(with_section(bundle, 1, {signature(1), signature(2)})), "");
  EXPECT_THAT(error_of(with_section(bundle, 2, {signature(1), signature(1)})), HasSubstr("is there twice"));
}

// ---- Target triples, and the object formats of their processors

TargetTriple triple(std::string_view text) { return TargetTriple::parse(text).value(); }

struct Pair {
  std::string_view code;
  std::string_view node;
  bool runs;
  std::string_view why;
};

TEST(TargetTriple, is_compared_by_meaning_and_not_as_text) {
  const Pair table[] = {
      {"x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu", true, "the vendor says nothing"},
      {"x86_64-linux-gnu", "x86_64-unknown-linux-gnu", true, "Debian leaves the vendor out"},
      {"amd64-linux-gnu", "x86_64-linux-gnu", true, "two names of one architecture"},
      {"arm64-linux-gnu", "aarch64-unknown-linux-gnu", true, "two names of one architecture"},
      {"aarch64-unknown-linux5.10.0-gnu2.31.0", "aarch64-linux-gnu", true, "Zig writes versions into its triples"},
      {"riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu", true, "Rust writes extensions into its triples"},
      {"x86_64-linux", "x86_64-linux-gnu", true, "no C library asked for"},
      {"x86_64-linux", "x86_64-linux-musl", true, "no C library asked for"},
      {"x86_64-linux-gnu", "aarch64-linux-gnu", false, "another architecture"},
      {"x86_64-linux-gnu", "x86_64-linux-musl", false, "another C library"},
      {"x86_64-linux-gnux32", "x86_64-linux-gnu", false, "32-bit pointers"},
      {"x86_64-linux-gnux32", "x86_64-linux-android", false, "two environments that we do not know"},
      {"x86_64-linux-android", "x86_64-linux-android", true, "the same one is the same one"},
      {"riscv64be-linux-gnu", "riscv64-linux-gnu", false, "another byte order"},
      {"aarch64_be-linux-gnu", "aarch64-linux-gnu", false, "another byte order"},
      {"s390x-linux-gnu", "powerpc64-linux-gnu", false, "two architectures that we do not know"},
      {"s390x-ibm-linux-gnu", "s390x-linux-gnu", true, "an architecture that we do not know matches by name"},
      {"x86_64-apple-darwin", "x86_64-linux-gnu", false, "another system"},
      {"x86_64-apple-darwin", "x86_64-pc-windows-msvc", false, "two systems that we do not know"},
      {"x86_64-unknown-none-elf", "x86_64-linux-gnu", false, "no system at all"},
  };
  for (const auto& [code, node, runs, why] : table)
    EXPECT_EQ(triple(code).runs_on(triple(node)), runs) << code << " on " << node << ": " << why;
}

TEST(TargetTriple, the_host_runs_what_was_built_for_it) {
  EXPECT_TRUE(TargetTriple::host().runs_on(TargetTriple::host()));
  EXPECT_EQ(TargetTriple::host().system, System::linux_elf);
}

TEST(TargetTriple, the_text_is_kept_as_it_was_written) {
  EXPECT_EQ(triple("aarch64-unknown-linux5.10.0-gnu2.31.0").text, "aarch64-unknown-linux5.10.0-gnu2.31.0");
}

TEST(TargetTriple, what_is_no_triple_is_refused_with_an_example) {
  for (const auto* text : {"", "x86_64", "-linux-gnu", "a-b-c-d-e"}) {
    const auto parsed = TargetTriple::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, TC_ERR_INVALID);
    EXPECT_NE(parsed.error().message.find("x86_64-linux-gnu"), std::string::npos);
  }
  EXPECT_FALSE(TargetTriple::parse("x86_64-linux-" + std::string(60, 'g')));
}

TEST(TargetTriple, architectures_have_names_for_messages) {
  EXPECT_EQ(arch_name(Arch::aarch64), "aarch64");
  EXPECT_EQ(arch_name(triple("s390x-linux-gnu").arch), "other");
}

}  // namespace
}  // namespace tc

namespace tc::object_format {
namespace {

// All that linkers write into objects of ours, and nothing else.
struct Known {
  Arch arch;
  std::vector<uint32_t> nothing;
  uint32_t relative;
  std::vector<uint32_t> symbol;
};

const Known known[] = {
    {Arch::x86_64, {R_X86_64_NONE}, R_X86_64_RELATIVE, {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT}},
    {Arch::aarch64,
     {R_AARCH64_NONE, 256},
     R_AARCH64_RELATIVE,
     {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT}},
    {Arch::riscv64, {R_RISCV_NONE}, R_RISCV_RELATIVE, {R_RISCV_64, R_RISCV_JUMP_SLOT}},
};

TEST(Relocation, of_each_processor_just_those_are_known_that_linkers_write) {
  for (const auto& one : known)
    for (uint32_t type = 0; type < 2000; ++type) {
      auto expected = Relocation::unknown;
      if (std::ranges::find(one.nothing, type) != one.nothing.end()) expected = Relocation::nothing;
      if (type == one.relative) expected = Relocation::relative;
      if (std::ranges::find(one.symbol, type) != one.symbol.end()) expected = Relocation::symbol;
      EXPECT_EQ(relocation_of(one.arch, type), expected) << "type " << type;
    }
}

TEST(ObjectFormat, processors_and_elf_machines_lead_to_each_other) {
  for (const auto& one : known) EXPECT_EQ(arch_of_elf(elf_machine(one.arch)), one.arch);
  EXPECT_EQ(elf_machine(Arch::none), EM_NONE);
  EXPECT_EQ(arch_of_elf(EM_PPC64), Arch::none);
  EXPECT_EQ(relocation_of(Arch::none, R_X86_64_64), Relocation::unknown);
  EXPECT_EQ(relocation_of(Arch::riscv64, ~uint32_t{0}), Relocation::unknown);  // the table's own filler
}

}  // namespace
}  // namespace tc::object_format
