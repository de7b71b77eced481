// SPDX-License-Identifier: Apache-2.0
#include "source/registry.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <string_view>

#include "base/file.h"
#include "source/message.h"

namespace tc::source {
namespace {

Bundle make_bundle(const std::string& name, std::string_view code) {
  Manifest manifest;
  manifest.name = name;
  manifest.entries = entry_main;
  Slice slice;
  slice.triple = TargetTriple::host();
  slice.unpacked_size = static_cast<uint32_t>(code.size());
  manifest.slices.push_back(slice);
  const auto bytes = as_bytes(code);
  return *Bundle::pack(manifest, {Bytes(bytes.begin(), bytes.end())});
}

TEST(Registry, the_same_content_gives_the_same_handle) {
  Registry registry({});
  EXPECT_EQ(registry.add(make_bundle("tsi", "one")), registry.add(make_bundle("tsi", "one")));
}

TEST(Registry, code_that_comes_with_more_slices_is_known_with_all_of_them) {
  const auto whole = make_bundle("tsi", "one");
  const auto without = Bundle::read_carried(whole.bytes_for(0), 0, whole.id());
  ASSERT_TRUE(without) << without.error().message;
  Registry registry({});
  const auto ifunc = registry.add(*without);
  EXPECT_FALSE(ifunc->bundle.holds(0));
  EXPECT_EQ(registry.add(whole), ifunc);
  EXPECT_TRUE(ifunc->bundle.holds(0));
}

TEST(Registry, changed_code_under_an_old_name_gives_a_new_handle_and_the_name_follows) {
  Registry registry({});
  const auto old_code = registry.add(make_bundle("tsi", "one"));
  const auto new_code = registry.add(make_bundle("tsi", "two"));
  EXPECT_NE(old_code, new_code);
  EXPECT_NE(old_code->index, new_code->index);
  EXPECT_EQ(registry.find("tsi"), new_code);
}

TEST(Registry, an_ifunc_is_forgotten_when_every_registration_was_given_back) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  registry.add(make_bundle("tsi", "one"));
  registry.remove(ifunc);
  EXPECT_EQ(registry.find("tsi"), ifunc);
  registry.remove(ifunc);
  EXPECT_EQ(registry.find("tsi"), nullptr);
}

TEST(Registry, a_missing_file_is_an_error_that_lists_the_places_tried) {
  Registry registry({"/nowhere/a", "/nowhere/b"});
  const auto file = registry.find_file("tsi");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, TC_ERR_NOT_FOUND);
  EXPECT_EQ(file.error().message, "no ifunc 'tsi': looked for /nowhere/a/tsi.ifunc, /nowhere/b/tsi.ifunc");
}

TEST(Registry, a_name_is_looked_up_along_the_path) {
  const auto directory = TemporaryDirectory::create().value();
  ASSERT_TRUE(write_file_atomically(directory.file("tsi.ifunc"), as_bytes("x")));
  Registry registry({"/nowhere", directory.path()});
  EXPECT_EQ(registry.find_file("tsi").value(), directory.file("tsi.ifunc"));
}

TEST(Registry, a_name_with_a_slash_or_the_ending_is_a_file_and_is_not_looked_up_along_the_path) {
  const auto directory = TemporaryDirectory::create().value();
  ASSERT_TRUE(write_file_atomically(directory.file("tsi.ifunc"), as_bytes("x")));
  ASSERT_TRUE(write_file_atomically(directory.file("tsi"), as_bytes("x")));
  Registry registry({directory.path()});
  for (const auto* const name : {"tsi.ifunc", "tsi"})
    EXPECT_EQ(registry.find_file(directory.file(name)).value(), directory.file(name));
  for (const std::string name : {"./no_such_file", "tsi.ifunc"}) {
    const auto file = registry.find_file(name);
    ASSERT_FALSE(file) << *file;
    EXPECT_EQ(file.error().message, "there is no file " + name);
  }
}

TEST(Message, without_payload_functions_the_source_args_are_the_payload) {
  Registry registry({});
  char text[] = "abc";
  const auto message = Message::create(registry.add(make_bundle("tsi", "one")), text, 3, 100).value();
  EXPECT_EQ(as_text({message->payload(), message->size()}), "abc");
}

TEST(Message, made_in_place_has_the_source_args_themselves_unless_they_are_few_bytes) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  char text[24] = "abcdefghijklmnopqrstuvw";
  const auto* const there = reinterpret_cast<const std::byte*>(text);
  const auto message = Message::create_in_place(ifunc, text, 24, 24).value();
  EXPECT_EQ(message->payload(), there);
  EXPECT_EQ(message->size(), 24u);
  const auto small = Message::create_in_place(ifunc, text, 23, 24).value();
  EXPECT_NE(small->payload(), there);
  EXPECT_EQ(as_text({small->payload(), small->size()}), "abcdefghijklmnopqrstuvw");
  EXPECT_EQ(Message::create_in_place(ifunc, nullptr, 0, 24).value()->size(), 0u);
  EXPECT_EQ(Message::create_in_place(ifunc, text, 24, 23).error().code, TC_ERR_TOO_LARGE);
}

TEST(Message, made_in_place_of_an_ifunc_with_payload_functions_has_what_they_make) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  ifunc->functions.max_size = [](const void*, size_t size) { return size; };
  ifunc->functions.init_2021 = [](void* payload, size_t size, const void*, size_t) {
    std::memset(payload, 'x', size);
    return 0;
  };
  const std::string text(30, 'a');
  const auto message = Message::create_in_place(ifunc, text.data(), text.size(), 100).value();
  EXPECT_EQ(as_text({message->payload(), message->size()}), std::string(30, 'x'));
}

TEST(Message, payload_init_gets_memory_at_the_alignment_that_the_ifunc_asks_for) {
  Registry registry({});
  for (const uint8_t alignment_log2 : {4, 8, 12}) {
    auto manifest = make_bundle("aligned", "code").manifest();
    manifest.payload_alignment_log2 = alignment_log2;
    const auto ifunc = registry.add(*Bundle::pack(manifest, {Bytes(4)}));
    ifunc->functions.max_size = [](const void*, size_t size) { return size; };
    ifunc->functions.init_2021 = [](void* payload, size_t, const void*, size_t) {
      const auto address = reinterpret_cast<uintptr_t>(payload);
      return std::memcpy(payload, &address, sizeof address), 0;
    };
    std::vector<std::unique_ptr<Message>> messages;  // all alive: memory that is given out again proves little
    for (int i = 0; i < 8; ++i) {
      messages.push_back(Message::create(ifunc, nullptr, 100, 1000).value());
      uintptr_t seen = 0;
      std::memcpy(&seen, messages.back()->payload(), sizeof seen);
      EXPECT_EQ(seen % (uintptr_t{1} << alignment_log2), 0u);
      EXPECT_EQ(seen, reinterpret_cast<uintptr_t>(messages.back()->payload()));
    }
  }
}

TEST(Message, payload_init_builds_the_payload_in_place) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  ifunc->functions.max_size = [](const void*, size_t size) { return size * 2; };
  ifunc->functions.init_2021 = [](void* payload, size_t size, const void*, size_t) {
    std::memset(payload, 'x', size);
    return 0;
  };
  char text[] = "abc";
  const auto message = Message::create(ifunc, text, 3, 100).value();
  EXPECT_EQ(as_text({message->payload(), message->size()}), "xxxxxx");
}

TEST(Message, in_the_form_of_2022_the_payload_may_shrink_but_not_grow) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  ifunc->functions.max_size = [](const void*, size_t) -> size_t { return 10; };
  ifunc->functions.init_2022 = [](const void* args, size_t, void*, size_t* size) {
    *size = *static_cast<const size_t*>(args);
    return 0;
  };
  size_t four = 4, eleven = 11;
  EXPECT_EQ(Message::create(ifunc, &four, 8, 100).value()->size(), 4u);
  const auto too_much = Message::create(ifunc, &eleven, 8, 100);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().message, "payload_init of 'tsi' made 11 bytes when its bound was 10");
}

// All fresh memory is full of something, as long as this lives. (Sanitizers see to it by themselves.)
struct DirtyMemory {
  DirtyMemory() { ::mallopt(M_PERTURB, 0x5e); }
  ~DirtyMemory() { ::mallopt(M_PERTURB, 0); }
};

// Small payloads are copied in whole words, up to 24 bytes.
void expect_clean_padding(const Message& message) {
  for (size_t at = message.size(); at < 24; ++at)
    EXPECT_EQ(message.payload()[at], std::byte{0}) << "byte " << at << " behind " << message.size();
}

TEST(Message, the_padding_behind_a_small_payload_tells_nothing_of_what_was_there_before) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  char text[24] = "abcdefghijklmnopqrstuvw";
  const DirtyMemory dirty;
  for (size_t size = 0; size <= sizeof text; ++size)
    expect_clean_padding(*Message::create(ifunc, text, size, 100).value());
}

TEST(Message, a_payload_that_shrank_leaves_no_secrets_behind_it_either) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  ifunc->functions.max_size = [](const void*, size_t) -> size_t { return 200; };
  ifunc->functions.init_2022 = [](const void* args, size_t, void* payload, size_t* size) {
    *size = *static_cast<const size_t*>(args);
    std::memset(payload, 'x', *size);
    return 0;
  };
  const DirtyMemory dirty;
  for (size_t size = 0; size <= 24; ++size)
    expect_clean_padding(*Message::create(ifunc, &size, sizeof size, 1000).value());
}

TEST(Message, a_payload_of_exactly_the_limit_is_taken) {
  Registry registry({});
  char text[] = "abc";
  const auto message = Message::create(registry.add(make_bundle("tsi", "one")), text, 3, 3);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ((*message)->size(), 3u);
}

TEST(Message, a_payload_init_that_fails_and_a_payload_over_the_limit_are_errors) {
  Registry registry({});
  const auto ifunc = registry.add(make_bundle("tsi", "one"));
  char text[] = "abc";
  EXPECT_EQ(Message::create(ifunc, text, 3, 2).error().message,
            "payload of 'tsi' is up to 3 bytes when at most 2 are allowed");
  ifunc->functions.init_2021 = [](void*, size_t, const void*, size_t) { return 7; };
  EXPECT_EQ(Message::create(ifunc, text, 3, 100).error().message, "payload_init of 'tsi' returned 7");
}

// ---- Payload functions

size_t some_size(const void*, size_t) { return 8; }
int some_init(void*, size_t, const void*, size_t) { return 0; }
int other_init(const void*, size_t, void*, size_t*) { return 0; }

PayloadFunctions bind(uint8_t entries, void* init, std::string_view size_name) {
  Manifest manifest;
  manifest.entries = entries;
  return bind_payload_functions(manifest, nullptr, [&](const char* name) -> void* {
    if (std::string_view(name) == "payload_init") return init;
    return name == size_name ? reinterpret_cast<void*>(&some_size) : nullptr;
  });
}

TEST(PayloadFunctions, the_form_of_2021_has_a_largest_size_and_its_own_init) {
  const auto functions = bind(entry_main | entry_payload_get_max_size | entry_payload_init,
                              reinterpret_cast<void*>(&some_init), "payload_get_max_size");
  EXPECT_EQ(functions.max_size, &some_size);
  EXPECT_EQ(functions.init_2021, &some_init);
  EXPECT_EQ(functions.init_2022, nullptr);
}

TEST(PayloadFunctions, the_form_of_2022_has_a_bound_and_its_own_init) {
  const auto functions = bind(entry_main | entry_payload_bound | entry_payload_init_2022,
                              reinterpret_cast<void*>(&other_init), "payload_bound");
  EXPECT_EQ(functions.max_size, &some_size);
  EXPECT_EQ(functions.init_2021, nullptr);
  EXPECT_EQ(functions.init_2022, &other_init);
}

TEST(PayloadFunctions, each_of_the_four_entries_says_that_there_are_some) {
  Manifest manifest;
  for (const auto entries : {entry_main, entry_library, entry_against}) {
    manifest.entries = entries;
    EXPECT_FALSE(has_payload_functions(manifest));
  }
  for (const auto entry :
       {entry_payload_get_max_size, entry_payload_init, entry_payload_bound, entry_payload_init_2022}) {
    manifest.entries = entry;
    EXPECT_TRUE(has_payload_functions(manifest));
  }
}

}  // namespace
}  // namespace tc::source
