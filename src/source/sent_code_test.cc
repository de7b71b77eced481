// SPDX-License-Identifier: Apache-2.0
#include "source/sent_code.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <functional>

#include "source/code_table.h"

namespace tc::source {
namespace {

Bundle make_bundle(char content, size_t size = 1000) {
  Manifest manifest;
  manifest.name = "tsi";
  Slice slice;
  slice.triple = TargetTriple::host();
  manifest.slices.push_back(slice);
  return *Bundle::pack(manifest, {Bytes(size, static_cast<std::byte>(content))});
}

TEST(SentCode, what_was_sent_is_found_and_shares_its_memory_with_the_bundle) {
  SentCode sent(1 << 20);
  const auto bundle = make_bundle('a');
  sent.keep(bundle);
  ASSERT_NE(sent.find(bundle.id()), nullptr);
  EXPECT_EQ(sent.find(bundle.id())->stored(0).data(), bundle.stored(0).data());
  EXPECT_EQ(sent.find(make_bundle('b').id()), nullptr);
}

TEST(SentCode, what_is_sent_to_many_peers_is_kept_once) {
  SentCode sent(1 << 20);
  const auto bundle = make_bundle('a');
  sent.keep(bundle);
  const auto once = sent.bytes();
  sent.keep(bundle);
  EXPECT_EQ(sent.bytes(), once);
}

TEST(SentCode, code_that_is_sent_with_more_slices_is_kept_with_them_and_counted_once) {
  auto manifest = make_bundle('a').manifest();
  manifest.slices.push_back(manifest.slices[0]);
  const auto whole = *Bundle::pack(manifest, {Bytes(1000), Bytes(2000)});
  const auto part = *Bundle::read_carried(whole.bytes_for(1), 1, whole.id());
  SentCode sent(1 << 20);
  sent.keep(part);
  EXPECT_EQ(sent.bytes(), SentCode::cost(part));
  sent.keep(whole);
  EXPECT_EQ(sent.find(whole.id())->carried(), 3u);
  EXPECT_EQ(sent.bytes(), SentCode::cost(whole));
  sent.keep(part);
  EXPECT_EQ(sent.find(whole.id())->carried(), 3u) << "fewer slices replace nothing";
}

TEST(SentCode, beyond_the_budget_the_code_that_was_sent_first_goes) {
  SentCode sent(3 * SentCode::cost(make_bundle('a')));
  for (const char content : {'a', 'b', 'c', 'd'}) sent.keep(make_bundle(content));
  EXPECT_EQ(sent.find(make_bundle('a').id()), nullptr);
  for (const char content : {'b', 'c', 'd'}) EXPECT_NE(sent.find(make_bundle(content).id()), nullptr) << content;
}

TEST(SentCode, each_code_beyond_the_budget_costs_the_oldest_that_is_left) {
  const auto size = SentCode::cost(make_bundle('a'));
  SentCode sent(2 * size);
  for (char content = 'a'; content <= 'z'; ++content) {
    sent.keep(make_bundle(content));
    EXPECT_LE(sent.bytes(), 2 * size) << content;
    EXPECT_NE(sent.find(make_bundle(content).id()), nullptr) << content;
    if (content >= 'c') {
      EXPECT_EQ(sent.find(make_bundle(static_cast<char>(content - 2)).id()), nullptr) << content;
    }
  }
}

// What the allocator has given out: beside a sanitizer, which has an allocator of its own, next to nothing.
size_t memory_in_use() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

TEST(SentCode, what_is_kept_is_counted_with_all_the_memory_that_it_takes) {
  const auto names = [](const std::string& prefix, size_t count) {
    std::vector<std::string> all;
    for (size_t i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
    return all;
  };
  for (const size_t symbols : {0u, 3u, 40u})
    for (const size_t slices : {1u, 6u}) {
      SentCode sent(size_t{64} << 20);
      const auto before = memory_in_use();
      for (uint32_t version = 0; version < 200; ++version) {
        Manifest manifest;
        manifest.name = "a_name_that_is_longer_than_most";
        manifest.imports = names("a_symbol_with_a_long_name_", symbols);
        manifest.dependencies = names("libz.so.", symbols / 10);
        Slice slice;
        slice.triple = TargetTriple::host();
        manifest.slices.assign(slices, slice);
        std::vector<Bytes> stored(slices, Bytes(300));
        Writer(stored[0]).u32(version);
        auto packed = Bundle::pack(std::move(manifest), std::move(stored));
        ASSERT_TRUE(packed) << packed.error().message;
        auto& bundle = *packed;
        for (uint8_t key = 0; key < slices; ++key) {
          CodeSignature signature;
          signature.key.fill(std::byte{key});
          ASSERT_TRUE(bundle.add_signature(signature));
        }
        sent.keep(bundle);
      }
      const auto taken = memory_in_use() - before;
      EXPECT_LT(taken, sent.bytes() * 5 / 4) << symbols << " symbols, " << slices << " slices";
      if (taken > 200 * 300) {
        EXPECT_GT(taken, sent.bytes() * 3 / 4) << symbols << " symbols, " << slices << " slices";
      }
    }
}

// A bundle of which the test changes one part.
Bundle bundle_with(const std::function<void(Manifest&, std::vector<Bytes>&)>& change) {
  auto manifest = make_bundle('a').manifest();
  std::vector<Bytes> stored{Bytes(1000)};
  change(manifest, stored);
  auto packed = Bundle::pack(std::move(manifest), std::move(stored));
  EXPECT_TRUE(packed) << packed.error().message;
  return std::move(*packed);
}

TEST(SentCode, each_part_of_a_bundle_is_counted) {
  const auto plain = bundle_with([](auto&, auto&) {});
  constexpr size_t length = 100;
  const std::string text(length, 'x');
  // As the bundle travels it has the text too: that is counted besides.
  const auto more = [&](const Bundle& bundle) {
    return SentCode::cost(bundle) - SentCode::cost(plain) - (bundle.size_for(0) - plain.size_for(0));
  };
  const auto with_tool = bundle_with([&](auto& manifest, auto&) { manifest.tool = text; });
  EXPECT_GE(more(with_tool), length);
  const auto with_name = bundle_with([&](auto& manifest, auto&) { manifest.name = text; });
  EXPECT_GE(more(with_name), length);
  for (const auto list : {&Manifest::dependencies, &Manifest::imports, &Manifest::exports, &Manifest::against}) {
    const auto counted = [&](size_t names) {
      return more(bundle_with([&](auto& manifest, auto&) {
        manifest.entries = list == &Manifest::exports ? entry_library : list == &Manifest::against ? entry_against : 0;
        for (size_t i = 0; i < names; ++i) (manifest.*list).push_back(text + std::to_string(i));
      }));
    };
    EXPECT_GE(counted(1), length + sizeof(std::string));
    EXPECT_GE(counted(4), 4 * (length + sizeof(std::string)));
  }
  const auto long_triple = "x86_64-" + std::string(40, 'x') + "-linux-gnu";
  const auto with_triple =
      bundle_with([&](auto& manifest, auto&) { manifest.slices[0].triple = TargetTriple::parse(long_triple).value(); });
  EXPECT_GE(more(with_triple), long_triple.size() - plain.manifest().slices[0].triple.text.size());
  const auto with_cpu = bundle_with([&](auto& manifest, auto&) { manifest.slices[0].cpu = text; });
  EXPECT_GE(more(with_cpu), length);
}

TEST(SentCode, slices_are_counted_when_they_are_there_and_their_places_in_any_case) {
  const auto with_slices = [](size_t count, size_t size) {
    return bundle_with([&](auto& manifest, auto& stored) {
      manifest.slices.resize(count, manifest.slices[0]);
      stored.assign(count, Bytes(size));
    });
  };
  EXPECT_EQ(SentCode::cost(with_slices(2, 3000)) - SentCode::cost(with_slices(2, 1000)), 2 * 2000u);
  constexpr size_t allocation = 16;  // the allocator's part in one
  const auto one = with_slices(1, 1000), two = with_slices(2, 1000);
  const size_t slice = sizeof(Slice) + TargetTriple::host().text.size() + allocation;
  const size_t stored = sizeof(std::shared_ptr<Bytes>) + 2 * sizeof(void*) + allocation + sizeof(Bytes);
  EXPECT_GE(SentCode::cost(two) - SentCode::cost(one) - (two.size_for(0) - one.size_for(0)),
            slice + stored + 1000 + allocation);
  const auto packed = with_slices(3, 1000);
  const auto whole = *Bundle::read(packed.bytes());  // as the two below are, whose lists take the same memory then
  const auto part = *Bundle::read_carried(whole.bytes_for(2), 2, whole.id());
  const auto none = *Bundle::read_carried(whole.bytes_for(0), 0, whole.id());
  EXPECT_GE(SentCode::cost(part) - SentCode::cost(none), 1000 + sizeof(Bytes));
  EXPECT_EQ(SentCode::cost(whole) - SentCode::cost(part), 2 * (SentCode::cost(part) - SentCode::cost(none)));
  EXPECT_GE(SentCode::cost(none), 3 * sizeof(Slice));
}

TEST(SentCode, each_signature_is_counted) {
  auto bundle = make_bundle('a');
  const auto cost = [&] { return SentCode::cost(bundle) - bundle.size_for(0); };  // there they travel too
  const auto before = cost();
  for (uint8_t count = 1; count <= 5; ++count) {
    CodeSignature signature;
    signature.key.fill(std::byte{count});
    ASSERT_TRUE(bundle.add_signature(signature));
    EXPECT_GE(cost(), before + count * sizeof signature);
  }
}

TEST(SentCode, signatures_that_are_found_later_are_counted) {
  SentCode sent(1 << 20);
  auto bundle = make_bundle('a');
  sent.keep(bundle);
  const auto before = sent.bytes();
  EXPECT_FALSE(sent.add_signatures(bundle));
  ASSERT_TRUE(bundle.add_signature({}));
  EXPECT_TRUE(sent.add_signatures(bundle));
  EXPECT_GT(sent.bytes(), before);
  SentCode full(SentCode::cost(make_bundle('b')));
  auto other = make_bundle('b');
  full.keep(other);
  ASSERT_TRUE(other.add_signature({}));
  EXPECT_TRUE(full.add_signatures(other)) << "they were new, and too much";
  EXPECT_EQ(full.find(other.id()), nullptr);
  EXPECT_EQ(full.bytes(), 0u);
}

TEST(SentCode, code_that_is_larger_than_the_budget_is_not_kept) {
  SentCode sent(100);
  sent.keep(make_bundle('a'));
  EXPECT_EQ(sent.find(make_bundle('a').id()), nullptr);
  EXPECT_EQ(sent.bytes(), 0u);
}

TEST(SentCode, a_section_stays_valid_when_another_one_is_made) {
  SentCode sent(1 << 20);
  const auto first = sent.section(make_bundle('a'), 1);
  const auto copy = *first;
  EXPECT_EQ(sent.section(make_bundle('a'), 1), first) << "it is made once";
  EXPECT_NE(*sent.section(make_bundle('b'), 1), copy);
  EXPECT_EQ(*first, copy);
}

TEST(SentCode, a_section_of_up_to_a_mebibyte_is_made_once_and_a_larger_one_each_time) {
  SentCode sent(64 << 20);
  const size_t around = sent.section(make_bundle('a'), 1)->size() - 1000;
  for (const size_t size : {(size_t{1} << 20) - 16, size_t{1} << 20, (size_t{1} << 20) + 16}) {
    const auto bundle = make_bundle('b', size - around);
    const auto section = sent.section(bundle, 1);
    ASSERT_EQ(section->size(), size);
    EXPECT_EQ(sent.section(bundle, 1) == section, size <= size_t{1} << 20) << size;
  }
}

// ---- The numbers of code on a link

ContentId id_of(std::string_view code) { return ContentId::of(as_bytes(code)); }

TEST(CodeTable, a_peer_that_was_never_offered_code_has_no_number_for_it) {
  CodeTable table;
  EXPECT_EQ(table.number_of(3), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  EXPECT_EQ(table.id_of(0), nullptr);
}

TEST(CodeTable, numbers_are_dense_and_found_by_index_and_by_content) {
  CodeTable table;
  EXPECT_EQ(table.assign(id_of("a"), 5), 0u);
  table.set_sent(0, 5);
  EXPECT_EQ(table.assign(id_of("b"), CodeTable::none), 1u);
  table.set_sent(1, CodeTable::none);
  EXPECT_EQ(table.number_of(5), 0u);
  EXPECT_EQ(table.number_of(id_of("b")), 1u);
}

TEST(CodeTable, another_ifunc_of_the_same_code_gets_its_number_whatever_its_index_is) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 0), 0u);
  table.set_sent(0, 0);
  for (const uint32_t index : {1u, 1000u, 7u}) {
    table.alias(index, 0);
    EXPECT_EQ(table.number_of(index), 0u);
  }
  EXPECT_EQ(table.number_of(999), CodeTable::none);
  table.alias(CodeTable::none, 0);
}

TEST(CodeTable, a_number_leads_to_its_code_and_one_never_used_to_none) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 0), 0u);
  ASSERT_NE(table.id_of(0), nullptr);
  EXPECT_EQ(*table.id_of(0), id_of("a"));
  EXPECT_EQ(table.id_of(1), nullptr);
}

TEST(CodeTable, no_call_finds_a_number_before_its_code_has_left) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
  EXPECT_EQ(table.number_of(2), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  table.set_sent(0, 2);
  EXPECT_EQ(table.number_of(2), 0u);
  EXPECT_EQ(table.number_of(id_of("a")), 0u);
}

TEST(CodeTable, of_two_numbers_for_the_same_code_the_one_that_left_first_is_used) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
  ASSERT_EQ(table.assign(id_of("a"), 3), 1u);
  table.set_sent(1, 3);
  table.set_sent(0, 2);
  EXPECT_EQ(table.number_of(2), 1u);
  EXPECT_EQ(table.number_of(3), 1u);
  EXPECT_EQ(table.number_of(id_of("a")), 1u);
}

TEST(CodeTable, a_number_stands_for_code_and_for_those_on_whose_behalf_it_is_called) {
  const auto chain_of = [](std::byte key) {
    wire::Chain::Key bytes;
    bytes.fill(key);
    return std::make_shared<const wire::Chain>(std::vector{bytes});
  };
  const auto ana = chain_of(std::byte{1}), bob = chain_of(std::byte{2});
  CodeTable table;
  for (const auto& chain : {wire::SharedChain(), ana, bob}) {
    const auto number = table.assign(id_of("a"), CodeTable::none, chain).value();
    table.set_sent(number, CodeTable::none);
    EXPECT_EQ(table.number_of(id_of("a"), chain), number);
    EXPECT_EQ(*table.id_of(number), id_of("a"));
    EXPECT_EQ(table.chain_of(number), chain);
  }
  EXPECT_EQ(table.number_of(id_of("a"), chain_of(std::byte{2})), 2u) << "an equal one will do";
  table.withdraw(1);
  EXPECT_EQ(table.number_of(id_of("a"), ana), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a"), bob), 2u);
  std::vector<uint32_t> withdrawn;
  table.withdraw_all(id_of("a"), [&](uint32_t number) { withdrawn.push_back(number); });
  EXPECT_EQ(withdrawn, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a"), bob), CodeTable::none);
}

TEST(CodeTable, numbers_of_code_that_did_not_leave_are_not_used_up) {
  CodeTable table;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
    table.give_back(0);
    EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  }
}

TEST(CodeTable, code_that_has_to_be_sent_again_takes_another_number) {
  CodeTable table;
  ASSERT_EQ(table.assign(id_of("a"), 2), 0u);
  table.set_sent(0, 2);
  table.withdraw(0);
  EXPECT_EQ(table.number_of(2), CodeTable::none);
  EXPECT_EQ(table.number_of(id_of("a")), CodeTable::none);
  EXPECT_EQ(table.assign(id_of("a"), 2), 1u);
  table.set_sent(1, 2);
  EXPECT_EQ(table.number_of(2), 1u);
}

TEST(CodeTable, a_peer_is_sent_as_many_ifuncs_as_it_takes_and_no_more) {
  CodeTable table;
  ContentId id{};
  constexpr uint32_t limit = 1u << 20;  // receivers refuse larger numbers
  for (uint32_t number = 0; number < limit; ++number) {
    std::memcpy(id.bytes.data(), &number, sizeof number);
    ASSERT_EQ(table.assign(id, CodeTable::none), number);
  }
  const auto beyond = table.assign(id_of("a"), 0);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, TC_ERR_LIMIT);
  EXPECT_EQ(table.number_of(0), CodeTable::none);
}

}  // namespace
}  // namespace tc::source
