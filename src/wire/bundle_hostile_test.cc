// SPDX-License-Identifier: Apache-2.0
//
// Malformed bundles: whatever the bytes are, reading them gives an error, or a bundle that is what it claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/testing/bundles.h"
#include "wire/testing/raw_bundle.h"

namespace tc {
namespace {

using testing::bytes_of;
using testing::file_of;
using testing::four_slices;
using ::testing::HasSubstr;
using testing::RawManifest;
using testing::RawSlice;

void expect_refused(const RawManifest& m, tc_status_t code, std::string_view words) {
  const auto read = Bundle::read(file_of(m));
  ASSERT_FALSE(read) << "expected to be refused: " << words;
  EXPECT_EQ(read.error().code, code) << read.error().message;
  EXPECT_THAT(read.error().message, HasSubstr(std::string(words)));
}

TEST(HostileBundle, the_manifest_written_by_hand_is_good_before_it_is_spoilt) {
  const auto read = Bundle::read(file_of({}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->unpack(0), bytes_of("code"));
}

std::vector<Bundle> each_kind() {
  return {four_slices(), testing::with_bundled(), testing::a_library(), testing::a_librarys_user(),
          testing::concurrent_code()};
}

TEST(HostileBundle, an_empty_one_is_said_to_be_empty) {
  EXPECT_EQ(Bundle::read({}).error().message, "not an ifunc bundle: it is empty");
}

TEST(HostileBundle, truncated_at_any_byte_it_is_refused) {
  for (const auto& bundle : each_kind()) {
    const auto whole = bundle.bytes();
    for (size_t size = 0; size < whole.size(); ++size) {
      // A copy of exactly that size, so that the address sanitizer sees any read behind it.
      const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(Bundle::read(cut)) << bundle.manifest().name << " cut to " << size << " of " << whole.size();
    }
  }
}

TEST(HostileBundle, truncated_in_a_slice_it_is_refused_with_the_bytes_that_are_missing) {
  const auto whole = four_slices().bytes();
  const auto read = Bundle::read(ByteView(whole).first(whole.size() - 1));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("bytes wanted at byte"));
}

TEST(HostileBundle, truncated_before_its_slices_it_is_refused_with_the_bytes_that_are_missing) {
  const auto whole = file_of({});
  const size_t manifest = whole.size() - 8 - bytes_of("code").size();
  const auto cut_to = [&](size_t size) { return Bundle::read(ByteView(whole).first(size)).error(); };
  EXPECT_EQ(cut_to(3).message, "bundle: 4 bytes wanted at byte 0 when only 3 are left");
  EXPECT_EQ(cut_to(7).message, "bundle: 4 bytes wanted at byte 4 when only 3 are left");
  EXPECT_EQ(cut_to(20).message, fmt::format("bundle: {} bytes wanted at byte 8 when only 12 are left", manifest));
  for (const size_t size : {3, 7, 20}) EXPECT_EQ(cut_to(size).code, TC_ERR_MALFORMED);
}

TEST(HostileBundle, with_a_byte_too_many_it_is_refused) {
  auto bytes = four_slices().bytes();
  bytes.push_back(std::byte{0});
  const auto read = Bundle::read(bytes);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("the 1 bytes behind its slices are no signatures"));
}

void expect_no_flipped_bit_to_go_unnoticed(const Bundle& whole) {
  const auto good = whole.bytes();
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto read = Bundle::read(bytes);
    if (read) {
      EXPECT_NE(read->id(), whole.id()) << "bit " << bit << " changed nothing";
      for (size_t i = 0; i < read->manifest().slices.size(); ++i) (void)read->unpack(i);
    }
    EXPECT_FALSE(Bundle::read_carried(bytes, whole.carried(), whole.id())) << "bit " << bit << " under the expected id";
  }
}

TEST(HostileBundle, any_flipped_bit_is_refused_or_makes_it_another_bundle) {
  for (const auto& bundle : each_kind()) expect_no_flipped_bit_to_go_unnoticed(bundle);
}

TEST(HostileBundle, a_library_must_export_something_with_a_name) {
  const auto exports = [](uint16_t claimed, std::string_view name) {
    Bytes bytes;
    Writer(bytes).u16(claimed).str16(name);
    return RawManifest{.entries = entry_main | entry_library, .behind = bytes};
  };
  EXPECT_TRUE(Bundle::read(file_of(exports(1, "hash"))));
  expect_refused(exports(0, "hash"), TC_ERR_MALFORMED, "0 exports when a library has 1 to");
  expect_refused(exports(0xffff, "hash"), TC_ERR_MALFORMED, "65535 exports when a library has 1 to");
  expect_refused(exports(1, ""), TC_ERR_MALFORMED, "an exported symbol's name is empty or not printable");
  expect_refused(exports(1, "a\033[2J"), TC_ERR_MALFORMED, "an exported symbol's name is empty or not printable");
}

TEST(HostileBundle, the_libraries_that_it_uses_must_have_names_of_ifuncs) {
  const auto against = [](uint8_t claimed, std::string_view name, size_t times = 1) {
    Bytes bytes;
    Writer out(bytes);
    out.u8(claimed);
    for (size_t i = 0; i < times; ++i) out.str8(name);
    return RawManifest{.entries = entry_main | entry_against, .behind = bytes};
  };
  EXPECT_TRUE(Bundle::read(file_of(against(1, "hash"))));
  EXPECT_TRUE(Bundle::read(file_of(against(64, "hash", 64))));
  expect_refused(against(65, "hash", 65), TC_ERR_MALFORMED, "65 libraries that were sent when 1 to 64");
  expect_refused(against(0, "hash"), TC_ERR_MALFORMED, "0 libraries that were sent when 1 to");
  expect_refused(against(255, "hash"), TC_ERR_MALFORMED, "255 libraries that were sent when 1 to");
  expect_refused(against(1, "../hash"), TC_ERR_MALFORMED, "is none that an ifunc can have");
  expect_refused(against(1, ""), TC_ERR_MALFORMED, "is none that an ifunc can have");
}

TEST(HostileBundle, a_slice_that_does_not_match_its_hash_is_refused) {
  const auto read = Bundle::read(file_of({}, "c0de"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(read.error().message, HasSubstr("does not match its hash"));
}

TEST(HostileBundle, other_content_than_the_frame_names_is_refused) {
  const auto whole = four_slices();
  const auto read = Bundle::read_carried(whole.bytes(), whole.carried(), ContentId::of(as_bytes("another")));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("when the frame names"));
}

TEST(HostileBundle, slices_claimed_to_be_carried_must_exist_and_be_there) {
  const auto whole = four_slices();
  EXPECT_FALSE(Bundle::read_carried(whole.bytes(), 0b11111, whole.id())) << "there is no fifth slice";
  EXPECT_FALSE(Bundle::read_carried(whole.bytes(), ~uint64_t{0}, whole.id()));
  EXPECT_FALSE(Bundle::read_carried(whole.bytes(), 0b0111, whole.id())) << "the fourth slice is left over";
  EXPECT_FALSE(Bundle::read_carried(whole.bytes_for(0b0111), 0b1111, whole.id())) << "the fourth slice is missing";
  EXPECT_FALSE(Bundle::read_carried(whole.bytes_for(0b0001), 0b0010, whole.id())) << "another slice than claimed";
}

TEST(HostileBundle, what_is_no_bundle_says_so) {
  const auto read = Bundle::read(as_bytes("#include <stdio.h>"));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("not an ifunc bundle"));
  EXPECT_FALSE(Bundle::read({}));
}

TEST(HostileBundle, a_version_of_tomorrow_is_a_version_error) {
  expect_refused({.version = 2}, TC_ERR_VERSION, "has version 2 when this build reads version 1");
}

TEST(HostileBundle, counts_and_sizes_over_the_limits_are_refused) {
  expect_refused({.alignment = 13}, TC_ERR_MALFORMED, "2^13");
  expect_refused({.dependencies_claimed = 65}, TC_ERR_TOO_LARGE, "65 dependencies");
  expect_refused({.imports_claimed = 2049}, TC_ERR_TOO_LARGE, "2049 imports");
  expect_refused({.slices_claimed = 0}, TC_ERR_MALFORMED, "0 slices");
  expect_refused({.slices_claimed = 65}, TC_ERR_MALFORMED, "65 slices");
  const uint32_t much = BundleLimits::slice_bytes + 1;
  expect_refused({.slices = {{.stored_size = much, .unpacked_size = much}}}, TC_ERR_TOO_LARGE, "67108865 bytes");
  expect_refused({.slices = {{.packing = 1, .unpacked_size = much}}}, TC_ERR_TOO_LARGE, "67108865 bytes");
}

TEST(HostileBundle, counts_that_the_bytes_do_not_hold_are_refused) {
  expect_refused({.dependencies_claimed = 64}, TC_ERR_MALFORMED, "");
  expect_refused({.imports_claimed = 2048}, TC_ERR_MALFORMED, "bytes wanted at byte");
  expect_refused({.slices_claimed = 2}, TC_ERR_MALFORMED, "bytes wanted at byte");
}

TEST(HostileBundle, a_manifest_larger_than_the_limit_is_refused_before_it_is_read) {
  Bytes file;
  Writer(file).u32(bundle_format::magic).u32(64 * 1024 + 1);
  file.resize(file.size() + 64 * 1024 + 1);
  EXPECT_EQ(Bundle::read(file).error().code, TC_ERR_TOO_LARGE);
  Bytes lie;
  Writer(lie).u32(bundle_format::magic).u32(0xffffffff);
  EXPECT_EQ(Bundle::read(lie).error().code, TC_ERR_TOO_LARGE);
}

TEST(HostileBundle, names_that_could_act_in_a_terminal_or_a_path_are_refused) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("\x1b[2J"), std::string("a\0b", 3),
                                  std::string("../../etc/cron"), std::string("\xff"), std::string(129, 'n')})
    expect_refused({.name = name}, TC_ERR_MALFORMED, "the ifunc's name");
  expect_refused({.tool = "\x1b]0;"}, TC_ERR_MALFORMED, "tool's name");
  expect_refused({.dependencies_claimed = 1, .dependencies = {"lib\n.so"}}, TC_ERR_MALFORMED, "library's or symbol's");
  expect_refused({.imports_claimed = 1, .imports = {""}}, TC_ERR_MALFORMED, "library's or symbol's");
  expect_refused({.slices = {{.triple = "x86_64-linux-gnu\x07"}}}, TC_ERR_MALFORMED, "triple or CPU");
  expect_refused({.slices = {{.cpu = "\x7f"}}}, TC_ERR_MALFORMED, "triple or CPU");
}

TEST(HostileBundle, a_library_that_says_it_is_concurrent_is_refused) {
  Bytes exports;
  Writer(exports).u16(1).str16("hash");
  EXPECT_TRUE(Bundle::read(file_of({.entries = entry_main | entry_library, .behind = exports})));
  expect_refused({.entries = entry_main | entry_library | entry_concurrent, .behind = exports}, TC_ERR_MALFORMED,
                 "entries 0xa1 are a library that says it is concurrent code");
}

TEST(HostileBundle, a_slice_of_a_kind_that_we_do_not_know_is_refused) {
  expect_refused({.slices = {{.role = 3}}}, TC_ERR_MALFORMED, "role 3");
  expect_refused({.slices = {{.form = 0}}}, TC_ERR_MALFORMED, "form 0");
  expect_refused({.slices = {{.form = 4}}}, TC_ERR_MALFORMED, "form 4");
  expect_refused({.slices = {{.role = 2, .form = 2}}}, TC_ERR_MALFORMED, "role 2, form 2");
  expect_refused({.slices = {{.role = 0, .form = 3}}}, TC_ERR_MALFORMED, "role 0, form 3");
  expect_refused({.slices = {{.packing = 2}}}, TC_ERR_MALFORMED, "packing 2");
  expect_refused({.slices = {{.triple = "nonsense"}}}, TC_ERR_MALFORMED, "is not a target triple");
  expect_refused({.slices = {{.unpacked_size = 5}}}, TC_ERR_MALFORMED, "stored in 4 bytes when it holds 5");
}

TEST(HostileBundle, a_bundled_ifunc_that_is_not_what_it_says_is_refused) {
  const RawSlice good{.role = 2, .form = 3, .triple = "", .cpu = "friend"};
  auto with_triple = good;
  with_triple.triple = "x86_64-linux-gnu";
  expect_refused({.slices = {with_triple}}, TC_ERR_MALFORMED, "a bundled ifunc has a triple");
  for (const char* name : {"", "with/slash", "with space"}) {
    auto misnamed = good;
    misnamed.cpu = name;
    expect_refused({.slices = {misnamed}}, TC_ERR_MALFORMED,
                   misnamed.cpu == "with space" ? "printable" : "a name that");
  }
  // Its content is looked at when it is wanted.
  const auto junk = Bundle::read(file_of({.slices = {good}}));
  ASSERT_TRUE(junk) << junk.error().message;
  EXPECT_EQ(junk->bundled("friend").error().code, TC_ERR_MALFORMED);
  auto liar = good;
  const auto other = testing::four_slices().bytes();
  liar.stored_size = liar.unpacked_size = static_cast<uint32_t>(other.size());
  liar.hash = ContentId::of(other);
  const auto lies = Bundle::read(file_of({.slices = {liar}}, as_text(other)));
  ASSERT_TRUE(lies) << lies.error().message;
  EXPECT_THAT(lies->bundled("friend").error().message,
              HasSubstr("bundled ifunc 'friend' of ifunc 'raw' is ifunc 'golden'"));
}

TEST(HostileBundle, nothing_is_packed_that_would_not_be_read_back) {
  const auto pack = [](auto change) {
    Manifest m;
    m.name = "good";
    m.slices = {testing::slice_for(testing::x86, SliceRole::target, SliceForm::object)};
    std::vector<Bytes> stored = {bytes_of("code")};
    change(m, stored);
    return Bundle::pack(m, stored);
  };
  EXPECT_TRUE(pack([](auto&, auto&) {}));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.name = ""; }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.name = "../up"; }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.name = std::string(129, 'n'); }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.payload_alignment_log2 = 13; }));
  EXPECT_FALSE(pack([](auto& m, auto&) {
    m.entries = entry_library | entry_concurrent;
    m.exports = {"hash"};
  }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.imports = {"a symbol"}; }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.imports.assign(2049, "s"); }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.imports.assign(2000, std::string(40, 's')); })) << "manifest over 64 KiB";
  EXPECT_FALSE(pack([](auto& m, auto&) { m.dependencies.assign(65, "l"); }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.dependencies = {std::string(256, 'l')}; }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.slices[0].cpu = std::string(256, 'c'); }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.slices.clear(); }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.slices[0].triple = {}; }));
  EXPECT_FALSE(pack([](auto&, auto& stored) { stored.clear(); }));
  EXPECT_FALSE(pack([](auto& m, auto&) { m.slices[0].compressed = true; })) << "what is stored is not zstd";
  EXPECT_FALSE(pack([](auto&, auto& stored) { stored[0].resize(BundleLimits::slice_bytes + 1); }));
}

// ---- Compressed slices with a wrong size, and slices that are not compressed at all

// A bundle with one compressed slice whose manifest claims `claimed` bytes unpacked.
Result<Bytes> unpack_claiming(const Bytes& stored, uint32_t claimed) {
  RawSlice slice{.packing = 1, .stored_size = static_cast<uint32_t>(stored.size()), .unpacked_size = claimed};
  slice.hash = ContentId::of(stored);
  const auto read = Bundle::read(file_of({.slices = {slice}}, as_text(stored)));
  if (!read) return fail(read.error());
  return read->unpack(0);
}

TEST(HostileBundle, a_decompression_bomb_is_refused_before_memory_is_taken) {
  const auto bomb = compress(Bytes(8 * 1024 * 1024)).value();
  ASSERT_LT(bomb.size(), 4096u);
  EXPECT_TRUE(unpack_claiming(bomb, 8 * 1024 * 1024));
  const auto small = unpack_claiming(bomb, 100);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message, "compressed slice says it holds 8388608 bytes when its manifest says 100");
  EXPECT_EQ(
      decompress(compress(Bytes(BundleLimits::slice_bytes + 1)).value(), BundleLimits::slice_bytes + 1).error().code,
      TC_ERR_TOO_LARGE);
}

TEST(HostileBundle, a_compressed_slice_that_lies_about_its_size_is_refused) {
  auto frame = testing::zstd_frame_of("forty bytes, or so it says");
  const auto size = static_cast<uint32_t>(std::to_integer<int>(frame[5]));
  EXPECT_TRUE(unpack_claiming(frame, size));
  frame[5] = static_cast<std::byte>(size + 1);  // the frame header says one more than its block holds
  EXPECT_FALSE(unpack_claiming(frame, size + 1));
  frame[5] = static_cast<std::byte>(size - 1);
  EXPECT_FALSE(unpack_claiming(frame, size - 1));
}

TEST(HostileBundle, two_compressed_frames_in_a_row_do_not_overflow) {
  auto twice = testing::zstd_frame_of("once");
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_FALSE(unpack_claiming(twice, 4));
}

TEST(HostileBundle, a_slice_that_is_not_zstd_does_not_unpack) {
  const auto unpacked = unpack_claiming(bytes_of("code"), 4);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().message, "compressed slice of 4 bytes does not say how many it unpacks to");
}

}  // namespace
}  // namespace tc
