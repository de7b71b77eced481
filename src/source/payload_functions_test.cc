// SPDX-License-Identifier: Apache-2.0
#include "source/payload_functions.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tc::source {
namespace {

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
