// SPDX-License-Identifier: Apache-2.0
#include "base/content_id.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

TEST(ContentId, is_the_sha256_of_the_bytes) {
  EXPECT_EQ(ContentId::of(as_bytes("abc")).hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ContentId, differs_for_bytes_that_differ) {
  EXPECT_NE(ContentId::of(as_bytes("abc")), ContentId::of(as_bytes("abd")));
}

TEST(ContentId, survives_a_trip_through_its_bytes) {
  const auto id = ContentId::of(as_bytes("abc"));
  EXPECT_EQ(ContentId::from(id.bytes), id);
  EXPECT_EQ(ContentId::from(as_bytes("short")), ContentId{});
}

TEST(ContentId, has_a_short_form_for_messages) {
  EXPECT_EQ(ContentId::of(as_bytes("abc")).short_hex(), "ba7816bf8f01");
}

}  // namespace
}  // namespace tc
