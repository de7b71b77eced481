// SPDX-License-Identifier: Apache-2.0
#include "base/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tc {
namespace {

using testing::HasSubstr;

TEST(Plugin, is_found_along_the_loaders_path_and_gives_its_functions) {
  const auto library = open_plugin("libm.so.6", "");
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_TRUE(find_in_plugin(*library, "cos"));
  const auto missing = find_in_plugin(*library, "no_such_function");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("'no_such_function'"));
}

TEST(Plugin, that_is_missing_is_named_with_every_place_that_was_tried) {
  const auto library = open_plugin("libthreechains_none.so", "");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(library.error().message, HasSubstr("/bin/libthreechains_none.so"));
  EXPECT_THAT(library.error().message, HasSubstr("/lib/libthreechains_none.so"));
}

TEST(Plugin, with_a_wished_path_is_looked_for_nowhere_else) {
  const auto library = open_plugin("libm.so.6", "/no/such/place.so");
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, HasSubstr("/no/such/place.so"));
}

}  // namespace
}  // namespace tc
