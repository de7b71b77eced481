// SPDX-License-Identifier: Apache-2.0
#include "trust/code_signature.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "trust/testing/keys.h"
#include "wire/testing/bundles.h"

namespace tc::trust {
namespace {

using testing::key_pair;
using testing::public_key;

Bundle signed_by(unsigned char key, Bundle bundle) {
  EXPECT_TRUE(sign_bundle(bundle, key_pair(key)));
  return bundle;
}

// True: the bytes are a bundle, and the key signed all of it.
bool covers_all(ByteView bytes, const PublicKey& key) {
  const auto bundle = Bundle::read(bytes);
  if (!bundle || !is_signed_by(*bundle, key)) return false;
  const auto inner = bundle->bundled("golden");
  return inner && is_signed_by(*inner, key);
}

TEST(CodeSignature, covers_the_bundle_and_the_ifuncs_in_it) {
  const auto bundle = signed_by(1, tc::testing::with_bundled());
  EXPECT_EQ(bundle.signatures().size(), 2u);
  EXPECT_TRUE(is_signed_by(bundle, public_key(1)));
  EXPECT_FALSE(is_signed_by(bundle, public_key(2)));
  EXPECT_TRUE(is_signed_by(bundle.bundled("golden").value(), public_key(1)));
  EXPECT_EQ(bundle.id(), tc::testing::with_bundled().id());
}

TEST(CodeSignature, of_one_key_twice_is_one) {
  EXPECT_EQ(signed_by(1, signed_by(1, tc::testing::with_bundled())).signatures().size(), 2u);
}

TEST(CodeSignature, signers_are_those_whose_signatures_hold) {
  auto bundle = signed_by(2, signed_by(1, tc::testing::four_slices()));
  CodeSignature wrong;
  wrong.key = public_key(3).bytes;
  ASSERT_TRUE(bundle.add_signature(wrong));
  EXPECT_EQ(signers_of(bundle), (std::vector{public_key(1), public_key(2)}));
}

TEST(CodeSignature, of_another_bundle_does_not_hold) {
  auto bundle = tc::testing::four_slices();
  ASSERT_TRUE(bundle.add_signature(signed_by(1, tc::testing::a_library()).signatures().front()));
  EXPECT_FALSE(is_signed_by(bundle, public_key(1)));
}

TEST(CodeSignature, a_signature_of_the_bundled_ifunc_is_none_of_the_bundle) {
  auto bundle = tc::testing::with_bundled();
  ASSERT_TRUE(bundle.add_signature(signed_by(1, bundle).signatures().back()));
  EXPECT_FALSE(is_signed_by(bundle, public_key(1)));
  EXPECT_TRUE(is_signed_by(bundle.bundled("golden").value(), public_key(1)));
}

// A signature that was made once must stay valid, because other programs check signatures without our code.
TEST(CodeSignature, the_golden_file_is_what_is_signed_today) {
  const auto ours = signed_by(1, tc::testing::with_bundled()).bytes();
  const auto path = std::filesystem::path(TC_GOLDEN_DIR) / "bundle/signed.ifunc";
  if (std::getenv("TC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, ours));
  }
  const auto golden = read_file(path, 1 << 20);
  ASSERT_TRUE(golden) << golden.error().message;
  EXPECT_EQ(*golden, ours);
  EXPECT_TRUE(covers_all(*golden, public_key(1)));
}

TEST(CodeSignature, is_lost_with_every_byte_that_is_cut_off) {
  const auto bytes = signed_by(1, tc::testing::with_bundled()).bytes();
  const auto unsigned_bytes = tc::testing::with_bundled().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(covers_all(ByteView(bytes).first(size), public_key(1))) << size;
    EXPECT_EQ(Bundle::read(ByteView(bytes).first(size)).has_value(), size == unsigned_bytes.size()) << size;
  }
}

TEST(CodeSignature, is_lost_with_every_bit_that_is_turned) {
  auto bytes = signed_by(1, tc::testing::with_bundled()).bytes();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = std::byte{1} << (bit % 8);
    bytes[bit / 8] ^= mask;
    EXPECT_FALSE(covers_all(bytes, public_key(1))) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
  EXPECT_TRUE(covers_all(bytes, public_key(1)));
}

}  // namespace
}  // namespace tc::trust
