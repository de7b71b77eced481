// SPDX-License-Identifier: Apache-2.0
#include "target/loader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "target/elf_image.h"
#include "target/testing/object_builder.h"

namespace tc::target {
namespace {

using testing::calling_object;
using testing::counting_object;
using testing::data_address_object;
using testing::ObjectBuilder;
using Entry = void (*)(void*, size_t, void*);

Result<void*> nothing_resolves(const std::string& symbol) { return fail(TC_ERR_UNRESOLVED, "no '{}'", symbol); }

class Loader : public ::testing::TestWithParam<memory::Arena::Kind> {
 protected:
  Loader() : arena_(std::move(*memory::Arena::create(GetParam()))) {}

  Result<LoadedImage> load(const ObjectBuilder& object, const SymbolResolver& resolve = nothing_resolves) {
    file_ = object.build();
    TC_ASSIGN(image_, ElfImage::read(file_, object.arch));
    return load_image(image_, *arena_, resolve);
  }
  Entry entry(const LoadedImage& loaded) const {
    return reinterpret_cast<Entry>(loaded.at(*image_.find_code("ifunc_main")));
  }

  std::unique_ptr<memory::Arena> arena_;
  Bytes file_;
  ElfImage image_;
};

INSTANTIATE_TEST_SUITE_P(Arenas, Loader, ::testing::Values(memory::Arena::Kind::shared, memory::Arena::Kind::separate),
                         [](const auto& info) {
                           return info.param == memory::Arena::Kind::shared ? "shared" : "separate";
                         });

TEST_P(Loader, an_image_runs) {
  const auto loaded = load(counting_object());
  ASSERT_TRUE(loaded) << loaded.error().message;
  uint64_t counter = 41;
  entry (*loaded)(nullptr, 0, &counter);
  EXPECT_EQ(counter, 42u);
}

TEST_P(Loader, an_image_whose_symbols_are_counted_by_a_gnu_hash_runs) {
  auto object = counting_object();
  object.gnu_hash = true;
  const auto loaded = load(object);
  ASSERT_TRUE(loaded) << loaded.error().message;
  uint64_t counter = 0;
  entry (*loaded)(nullptr, 0, &counter);
  EXPECT_EQ(counter, 1u);
}

TEST_P(Loader, text_cannot_be_written_where_it_runs) {
  const auto loaded = load(counting_object());
  ASSERT_TRUE(loaded);
  auto* const at = static_cast<volatile char*>(loaded->at(0));
  EXPECT_DEATH(*at = 1, "");
}

TEST_P(Loader, freeing_gives_the_memory_back) {
  const auto before = arena_->used_bytes();
  {
    const auto loaded = load(counting_object());
    ASSERT_TRUE(loaded);
    EXPECT_GT(arena_->used_bytes(), before);
    EXPECT_EQ(arena_->used_bytes() - before, loaded->bytes());
  }
  EXPECT_EQ(arena_->used_bytes(), before);
}

TEST_P(Loader, an_unresolved_symbol_is_the_resolvers_error) {
  const auto loaded = load(calling_object("absent"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_UNRESOLVED);
  EXPECT_EQ(loaded.error().message, "no 'absent'");
  EXPECT_EQ(arena_->used_bytes(), 0u);
}

TEST_P(Loader, a_weak_symbol_that_is_nowhere_is_null) {
  auto object = calling_object("absent");
  object.symbols[1].binding = STB_WEAK;
  const auto loaded = load(object);
  ASSERT_TRUE(loaded) << loaded.error().message;
  uint64_t slot = 1;
  std::memcpy(&slot, loaded->at(memory::image_half), sizeof slot);
  EXPECT_EQ(slot, 0u);
}

TEST_P(Loader, a_denied_weak_symbol_is_still_an_error) {
  auto object = calling_object("absent");
  object.symbols[1].binding = STB_WEAK;
  const auto loaded = load(object, [](const std::string&) -> Result<void*> { return fail(TC_ERR_DENIED, "no"); });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_DENIED);
}

TEST_P(Loader, relative_relocations_point_into_the_image) {
  auto object = counting_object();
  object.data.resize(24);
  object.bss = 64;
  const uint32_t relative = object.arch == Arch::x86_64    ? R_X86_64_RELATIVE
                            : object.arch == Arch::aarch64 ? R_AARCH64_RELATIVE
                                                           : R_RISCV_RELATIVE;
  object.relocations = {{.offset = 8, .type = relative, .addend = static_cast<int64_t>(memory::image_half) + 16},
                        {.offset = 16, .type = relative, .addend = 0}};
  const auto loaded = load(object);
  ASSERT_TRUE(loaded) << loaded.error().message;
  void* slots[3];
  std::memcpy(slots, loaded->at(memory::image_half), sizeof slots);
  EXPECT_EQ(slots[1], loaded->at(memory::image_half + 16));
  EXPECT_EQ(slots[2], loaded->at(0));
}

TEST_P(Loader, bss_is_zero_also_in_memory_that_was_used_before) {
  auto object = counting_object();
  object.bss = 4096;
  {
    const auto first = load(object);
    ASSERT_TRUE(first);
    std::memset(first->at(memory::image_half), 0xAB, 4096);
  }
  const auto second = load(object);
  ASSERT_TRUE(second);
  const auto* const bss = static_cast<const unsigned char*>(second->at(memory::image_half));
  for (size_t i = 0; i < 4096; ++i) ASSERT_EQ(bss[i], 0) << "byte " << i;
}

#if defined(__x86_64__)
void add_two(void*, size_t, void* args) { *static_cast<uint64_t*>(args) += 2; }

TEST_P(Loader, a_symbol_of_the_node_is_called) {
  std::string asked;
  const auto loaded = load(calling_object("add_two"), [&](const std::string& symbol) -> Result<void*> {
    asked = symbol;
    return reinterpret_cast<void*>(&add_two);
  });
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(asked, "add_two");
  uint64_t counter = 40;
  entry (*loaded)(nullptr, 0, &counter);
  EXPECT_EQ(counter, 42u);
}

TEST_P(Loader, code_finds_its_data_at_the_distance_the_linker_gave) {
  std::vector<LoadedImage> images;  // several, so that the later ones lie at odd places
  for (int i = 0; i < 5; ++i) {
    auto loaded = load(data_address_object());
    ASSERT_TRUE(loaded) << loaded.error().message;
    void* address = nullptr;
    entry (*loaded)(nullptr, 0, &address);
    EXPECT_EQ(address, loaded->at(memory::image_half + 8));
    images.push_back(std::move(*loaded));
  }
}

TEST(LoaderDeath, a_stale_call_traps) {
  auto arena = std::move(*memory::Arena::create(memory::Arena::Kind::shared));
  const auto file = counting_object().build();
  const auto image = *ElfImage::read(file, Arch::x86_64);
  Entry stale = nullptr;
  {
    const auto loaded = load_image(image, *arena, nothing_resolves);
    stale = reinterpret_cast<Entry>(loaded->at(*image.find_code("ifunc_main")));
  }
  uint64_t counter = 0;
  EXPECT_EXIT(stale(nullptr, 0, &counter), ::testing::KilledBySignal(SIGTRAP), "");
}
#endif

}  // namespace
}  // namespace tc::target
