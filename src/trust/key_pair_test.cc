// SPDX-License-Identifier: Apache-2.0
#include "trust/key_pair.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tc::trust {
namespace {

KeyPair pair_of(unsigned char fill) {
  std::array<std::byte, KeyPair::seed_bytes> seed;
  seed.fill(std::byte{fill});
  return KeyPair::from_seed(seed).value();
}

TEST(KeyPair, follows_from_its_seed) {
  const auto pair = pair_of(7);
  EXPECT_EQ(KeyPair::from_seed(pair.seed())->public_key(), pair.public_key());
  EXPECT_NE(pair_of(8).public_key(), pair.public_key());
}

// RFC 8032, section 7.1, test 1.
TEST(KeyPair, signs_as_the_standard_does) {
  constexpr unsigned char seed[] = {0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a,
                                    0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32,
                                    0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
  const auto pair = KeyPair::from_seed(std::as_bytes(std::span(seed))).value();
  EXPECT_EQ(pair.public_key().text(), "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  const auto signature = pair.sign({});
  EXPECT_EQ(signature[0], std::byte{0xe5});
  EXPECT_EQ(signature[63], std::byte{0x0b});
  EXPECT_TRUE(verify(pair.public_key(), {}, signature));
}

TEST(KeyPair, a_fresh_one_is_no_other) { EXPECT_NE(KeyPair::fresh()->public_key(), KeyPair::fresh()->public_key()); }

TEST(Signature, holds_for_its_message_and_its_key_alone) {
  const auto pair = pair_of(1), other = pair_of(2);
  const auto signature = pair.sign(as_bytes("message"));
  EXPECT_TRUE(verify(pair.public_key(), as_bytes("message"), signature));
  EXPECT_FALSE(verify(pair.public_key(), as_bytes("messagf"), signature));
  EXPECT_FALSE(verify(other.public_key(), as_bytes("message"), signature));
  for (size_t byte = 0; byte < signature.size(); ++byte) {
    auto turned = signature;
    turned[byte] ^= std::byte{1};
    EXPECT_FALSE(verify(pair.public_key(), as_bytes("message"), turned)) << byte;
  }
}

TEST(PublicKey, its_text_is_read_back) {
  const auto key = pair_of(3).public_key();
  EXPECT_EQ(key.text().size(), 51u);
  EXPECT_EQ(PublicKey::parse(key.text()).value(), key);
}

TEST(PublicKey, other_text_is_refused) {
  const auto text = pair_of(3).public_key().text();
  for (const auto& wrong : {std::string(), std::string("ed25519:"), text.substr(0, 50), text + "A", text.substr(8),
                            "rsa:" + text.substr(8), text.substr(0, 20) + "+" + text.substr(21), text + "="})
    EXPECT_FALSE(PublicKey::parse(wrong)) << wrong;
  for (int letter = 0; letter < 256; ++letter) {
    auto changed = text;
    changed[20] = static_cast<char>(letter);
    const auto key = PublicKey::parse(changed);
    EXPECT_TRUE(!key || key->text() == changed) << letter;
  }
}

}  // namespace
}  // namespace tc::trust
