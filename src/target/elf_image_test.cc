// SPDX-License-Identifier: Apache-2.0
//
// Objects that are wrong in one place, and objects that are wrong anywhere.
#include "target/elf_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "memory/code_mapping.h"
#include "target/loader.h"
#include "target/testing/object_builder.h"

namespace tc::target {
namespace {

using testing::counting_object;
using ::testing::HasSubstr;
using testing::ObjectBuilder;

Error refusal(const ObjectBuilder& object, Arch arch) {
  const auto file = object.build();
  const auto image = ElfImage::read(file, arch);
  return image ? Error{TC_OK, "accepted"} : image.error();
}
Error refusal(const ObjectBuilder& object) { return refusal(object, object.arch); }

// The error of loading, for what shows only when relocations are applied.
Error load_refusal(const ObjectBuilder& object) {
  const auto file = object.build();
  const auto image = ElfImage::read(file, object.arch);
  if (!image) return image.error();
  const auto arena = std::move(*memory::Arena::create(memory::Arena::Kind::separate));
  const auto loaded = load_image(*image, *arena, [](const std::string&) -> Result<void*> { return nullptr; });
  return loaded ? Error{TC_OK, "accepted"} : loaded.error();
}

Elf64_Dyn entry(int64_t tag, uint64_t value = 1) {
  Elf64_Dyn e{};
  e.d_tag = tag;
  e.d_un.d_val = value;
  return e;
}

Elf64_Phdr segment(uint32_t type, uint32_t flags = PF_R, uint64_t address = 0, uint64_t size = 0) {
  Elf64_Phdr s{};
  s.p_type = type;
  s.p_flags = flags;
  s.p_vaddr = address;
  s.p_memsz = size;
  return s;
}

TEST(ElfImage, another_machine_is_no_slice_for_this_one) {
  const auto other = TargetTriple::host().arch == Arch::riscv64 ? Arch::x86_64 : Arch::riscv64;
  const auto error = refusal(counting_object(), other);
  EXPECT_EQ(error.code, TC_ERR_NO_SLICE);
  EXPECT_THAT(error.message, HasSubstr(std::string(arch_name(other))));
}

TEST(ElfImage, thread_locals_are_refused) {
  auto object = counting_object();
  object.more_segments.push_back(segment(PT_TLS, PF_R, 0, 24));
  EXPECT_EQ(refusal(object).code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(refusal(object).message, HasSubstr("24 bytes of thread-local"));
}

TEST(ElfImage, an_executable_stack_is_refused) {
  auto object = counting_object();
  object.more_segments.push_back(segment(PT_GNU_STACK, PF_R | PF_W | PF_X));
  EXPECT_EQ(refusal(object).code, TC_ERR_UNSUPPORTED);
  object.more_segments[0].p_flags = PF_R | PF_W;
  EXPECT_EQ(refusal(object).code, TC_OK);
}

TEST(ElfImage, constructors_are_refused) {
  for (const int64_t tag : {DT_INIT, DT_INIT_ARRAY, DT_FINI, DT_FINI_ARRAY, DT_PREINIT_ARRAY}) {
    auto object = counting_object();
    object.more_dynamic.push_back(entry(tag));
    EXPECT_EQ(refusal(object).code, TC_ERR_UNSUPPORTED) << tag;
    EXPECT_THAT(refusal(object).message, HasSubstr("constructors"));
  }
}

TEST(ElfImage, relocations_of_text_are_refused) {
  auto object = counting_object();
  object.more_dynamic.push_back(entry(DT_TEXTREL));
  EXPECT_EQ(refusal(object).code, TC_ERR_MALFORMED);
  object.more_dynamic[0] = entry(DT_FLAGS, DF_TEXTREL);
  EXPECT_EQ(refusal(object).code, TC_ERR_MALFORMED);
}

TEST(ElfImage, a_segment_that_is_writable_and_executable_is_refused) {
  auto object = counting_object();
  object.more_segments.push_back(segment(PT_LOAD, PF_R | PF_W | PF_X, memory::image_half, 16));
  EXPECT_THAT(refusal(object).message, HasSubstr("flags 7"));
}

TEST(ElfImage, a_second_text_segment_is_refused) {
  auto object = counting_object();
  object.more_segments.push_back(segment(PT_LOAD, PF_R | PF_X, 0, 16));
  EXPECT_EQ(refusal(object).code, TC_ERR_MALFORMED);
}

// With a data segment of its own, which says what it likes of its size and place.
ObjectBuilder with_data(uint64_t bytes, uint64_t bytes_in_file, uint64_t offset = 0, uint64_t alignment = 1) {
  auto object = counting_object();
  auto& data = object.more_segments.emplace_back(segment(PT_LOAD, PF_R | PF_W, memory::image_half, bytes));
  data.p_filesz = bytes_in_file;
  data.p_offset = offset;
  data.p_align = alignment;
  return object;
}

TEST(ElfImage, a_segment_larger_than_its_half_of_the_image_is_refused) {
  EXPECT_EQ(refusal(with_data(memory::image_half, 8)).message, "accepted");
  for (const uint64_t bytes : {uint64_t{memory::image_half} + 1, UINT64_MAX})
    EXPECT_THAT(refusal(with_data(bytes, 8)).message, HasSubstr(fmt::format("has {} bytes, 8 in the file", bytes)));
}

TEST(ElfImage, a_segment_with_more_bytes_in_the_file_than_in_memory_is_refused) {
  EXPECT_EQ(refusal(with_data(8, 8)).message, "accepted");
  EXPECT_THAT(refusal(with_data(8, 9)).message, HasSubstr("has 8 bytes, 9 in the file"));
}

TEST(ElfImage, a_segment_that_does_not_lie_in_the_object_is_refused) {
  const uint64_t end = with_data(8, 8).build().size();
  EXPECT_EQ(refusal(with_data(8, 8, end - 8)).message, "accepted");
  EXPECT_EQ(refusal(with_data(8, 0, end)).message, "accepted");
  for (const auto& [bytes, offset] : {std::pair<uint64_t, uint64_t>{8, end - 7}, {0, end + 1}, {8, UINT64_MAX - 3}})
    EXPECT_THAT(refusal(with_data(8, bytes, offset)).message,
                HasSubstr(fmt::format("at byte {} when the object ends at byte {}", offset, end)));
}

TEST(ElfImage, an_alignment_that_is_no_power_of_two_is_refused) {
  for (const uint64_t alignment : {0, 1, 2, 4096})
    EXPECT_EQ(refusal(with_data(8, 8, 0, alignment)).message, "accepted");
  for (const uint64_t alignment : {3, 4097})
    EXPECT_THAT(refusal(with_data(8, 8, 0, alignment)).message, HasSubstr(fmt::format("aligned to {}", alignment)));
}

TEST(ElfImage, sixteen_segments_are_taken_and_no_more) {
  auto object = counting_object();  // two: its text and its dynamic table
  object.more_segments.assign(14, segment(PT_GNU_STACK, PF_R | PF_W));
  EXPECT_EQ(refusal(object).message, "accepted");
  object.more_segments.push_back(object.more_segments.back());
  EXPECT_THAT(refusal(object).message, HasSubstr("17 program headers"));
}

TEST(ElfImage, an_interpreter_is_refused) {
  auto object = counting_object();
  object.more_segments.push_back(segment(PT_INTERP));
  EXPECT_THAT(refusal(object).message, HasSubstr("type 0x3"));
}

TEST(ElfImage, unknown_relocations_are_refused_with_type_and_place) {
  auto object = counting_object();
  object.data.resize(8);
  object.relocations.push_back({.offset = 0, .type = 77});
  const auto error = load_refusal(object);
  EXPECT_EQ(error.code, TC_ERR_MALFORMED);
  EXPECT_THAT(error.message, HasSubstr("type 77 at 0x4000000"));
}

TEST(ElfImage, relocations_outside_the_data_half_are_refused) {
  auto object = counting_object();
  object.data.resize(8);
  const uint32_t relative = object.arch == Arch::x86_64    ? R_X86_64_RELATIVE
                            : object.arch == Arch::aarch64 ? R_AARCH64_RELATIVE
                                                           : R_RISCV_RELATIVE;
  for (const uint64_t offset :
       {uint64_t{1}, uint64_t{8}, uint64_t{0} - memory::image_half, uint64_t{0} - 8, ~uint64_t{0}}) {
    object.relocations = {{.offset = offset, .type = relative}};
    EXPECT_EQ(load_refusal(object).code, TC_ERR_MALFORMED) << offset;
    EXPECT_THAT(load_refusal(object).message, HasSubstr("outside the data half"));
  }
}

TEST(ElfImage, relative_relocations_that_point_out_of_the_image_are_refused) {
  auto object = counting_object();
  object.data.resize(8);
  const uint32_t relative = object.arch == Arch::x86_64    ? R_X86_64_RELATIVE
                            : object.arch == Arch::aarch64 ? R_AARCH64_RELATIVE
                                                           : R_RISCV_RELATIVE;
  for (const int64_t addend : {int64_t{-1}, int64_t{1} << 20, static_cast<int64_t>(memory::image_half) + 9}) {
    object.relocations = {{.offset = 0, .type = relative, .addend = addend}};
    EXPECT_EQ(load_refusal(object).code, TC_ERR_MALFORMED) << addend;
  }
}

TEST(ElfImage, relocations_by_a_symbol_that_is_not_there_are_refused) {
  auto object = counting_object();
  object.data.resize(8);
  const uint32_t absolute = object.arch == Arch::x86_64    ? R_X86_64_64
                            : object.arch == Arch::aarch64 ? R_AARCH64_ABS64
                                                           : R_RISCV_64;
  object.relocations = {{.offset = 0, .type = absolute, .symbol = 2}};
  EXPECT_THAT(load_refusal(object).message, HasSubstr("symbol 2 when the object has 2"));
}

TEST(ElfImage, a_symbol_outside_the_image_is_no_code) {
  auto object = counting_object();
  object.symbols[0].offset = 1 << 20;
  const auto file = object.build();
  const auto image = ElfImage::read(file, object.arch);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->find_code("ifunc_main"), std::nullopt);
  EXPECT_THAT(image->symbol(1).error().message, HasSubstr("outside the image"));
}

TEST(ElfImage, data_is_no_code) {
  auto object = counting_object();
  object.data.resize(8);
  object.symbols[0].where = ObjectBuilder::In::data;
  const auto file = object.build();
  EXPECT_EQ(ElfImage::read(file, object.arch)->find_code("ifunc_main"), std::nullopt);
}

TEST(ElfImage, code_that_addresses_by_pages_is_moved_by_pages) {
  auto object = counting_object();
  object.arch = Arch::aarch64;
  object.code = testing::bytes_of({0x08, 0x00, 0x02, 0xB0, 0xC0, 0x03, 0x5F, 0xD6});  // adrp x8, ...; ret
  const auto with = object.build();
  EXPECT_EQ(ElfImage::read(with, Arch::aarch64)->alignment(), 4096u);
  object.code = testing::bytes_of({0xC0, 0x03, 0x5F, 0xD6});
  const auto without = object.build();
  EXPECT_EQ(ElfImage::read(without, Arch::aarch64)->alignment(), 64u);
}

TEST(ElfImage, an_alignment_is_kept_up_to_a_page) {
  auto object = counting_object();
  for (const auto& [asked, given] : {std::pair{1, 64}, {128, 128}, {4096, 4096}, {65536, 4096}}) {
    object.alignment = static_cast<uint64_t>(asked);
    const auto file = object.build();
    EXPECT_EQ(ElfImage::read(file, object.arch)->alignment(), static_cast<size_t>(given));
  }
}

// Reads and loads whatever comes, and looks at all of it, but never runs it. From a buffer of exactly its size, so
// that a sanitizer sees a read behind it.
void use(ByteView bytes, Arch arch) {
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  static const auto arena = std::move(*memory::Arena::create(memory::Arena::Kind::shared));
  const auto image = ElfImage::read(ByteView(exact.get(), bytes.size()), arch);
  if (!image) {
    EXPECT_FALSE(image.error().message.empty());
    return;
  }
  (void)image->find_code("ifunc_main");
  const auto loaded = load_image(*image, *arena, [](const std::string&) -> Result<void*> { return nullptr; });
  EXPECT_TRUE(loaded || !loaded.error().message.empty());
}

ObjectBuilder rich_object() {
  auto object = counting_object();
  object.arch = Arch::x86_64;
  object.data.resize(32);
  object.bss = 40;
  object.symbols.push_back({.name = "outside", .where = ObjectBuilder::In::nowhere});
  object.symbols.push_back({.name = "variable", .where = ObjectBuilder::In::data, .type = STT_OBJECT});
  object.relocations = {{.offset = 0, .type = R_X86_64_GLOB_DAT, .symbol = 2},
                        {.offset = 8, .type = R_X86_64_RELATIVE, .addend = 64},
                        {.offset = 16, .type = R_X86_64_64, .symbol = 3}};
  return object;
}

TEST(HostileObject, an_object_cut_short_anywhere_never_crashes_and_mostly_fails) {
  for (const bool gnu_hash : {false, true}) {
    auto object = rich_object();
    object.gnu_hash = gnu_hash;
    const auto file = object.build();
    ASSERT_TRUE(ElfImage::read(file, Arch::x86_64));
    for (size_t size = 0; size < file.size(); ++size) {
      const auto cut = ByteView(file).first(size);
      use(cut, Arch::x86_64);
      EXPECT_FALSE(ElfImage::read(cut, Arch::x86_64)) << size;
    }
  }
}

TEST(HostileObject, an_object_with_any_bit_flipped_never_crashes) {
  for (const bool gnu_hash : {false, true}) {
    auto object = rich_object();
    object.gnu_hash = gnu_hash;
    auto file = object.build();
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      const auto mask = static_cast<std::byte>(1u << bit % 8);
      file[bit / 8] ^= mask;
      use(file, Arch::x86_64);
      file[bit / 8] ^= mask;
    }
  }
}

TEST(HostileObject, an_object_with_extreme_numbers_anywhere_never_crashes) {
  const auto original = rich_object().build();
  const uint64_t extremes[] = {0,
                               1,
                               memory::image_half - 1,
                               memory::image_half,
                               2 * memory::image_half,
                               uint64_t{1} << 31,
                               uint64_t{1} << 32,
                               uint64_t{1} << 63,
                               ~uint64_t{0},
                               ~uint64_t{0} - 7,
                               ~uint64_t{0} - memory::image_half};
  for (size_t at = 0; at + 8 <= original.size(); at += 4)
    for (const auto value : extremes) {
      auto file = original;
      std::memcpy(file.data() + at, &value, sizeof value);
      use(file, Arch::x86_64);
    }
}

TEST(HostileObject, random_damage_never_crashes) {
  const auto original = rich_object().build();
  std::mt19937 random(42);
  for (int round = 0; round < 20'000; ++round) {
    auto file = original;
    for (unsigned changes = 1 + random() % 8; changes != 0; --changes)
      file[random() % file.size()] = static_cast<std::byte>(random());
    use(file, Arch::x86_64);
  }
}

}  // namespace
}  // namespace tc::target
