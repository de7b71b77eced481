// SPDX-License-Identifier: Apache-2.0
//
// Keys: pairs, their files, and what they sign.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "trust/code_signature.h"
#include "trust/key_file.h"
#include "trust/key_pair.h"
#include "trust/testing/keys.h"
#include "wire/testing/bundles.h"

namespace tc::trust {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::key_pair;
using ::testing::Not;
using testing::public_key;

// ---- Key pairs

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

// ---- Their files

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() { ::setenv("THREECHAINS_HOME", home_.c_str(), 1); }
  ~KeyFile() override { ::unsetenv("THREECHAINS_HOME"); }

  static mode_t mode_of(const std::filesystem::path& file) {
    struct stat info{};
    return ::stat(file.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }
  void write(std::string_view text) const {
    ASSERT_TRUE(write_file_atomically(file_, as_bytes(text)));
    ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  std::filesystem::path home_ = directory_.file("home");
  std::filesystem::path file_ = directory_.file("key");
};

TEST_F(KeyFile, what_was_written_is_read_back) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  const auto key = read_key_file(file_);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->public_key(), key_pair(1).public_key());
  const auto text = read_file(file_, 1000).value();
  EXPECT_EQ(as_text(text), "threechains-private-key 1 AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\n");
}

TEST_F(KeyFile, it_and_its_folder_are_the_owners_alone) {
  const auto old = ::umask(0);
  const auto path = key_path("node").value();
  ASSERT_TRUE(write_key_file(path, key_pair(1)));
  ::umask(old);
  EXPECT_EQ(path, home_ / "keys" / "node");
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(mode_of(home_), 0700u);
  EXPECT_EQ(mode_of(home_ / "keys"), 0700u);
}

TEST_F(KeyFile, one_that_is_there_is_not_replaced) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  EXPECT_EQ(write_key_file(file_, key_pair(2)).error().code, TC_ERR_BUSY);
  EXPECT_EQ(read_key_file(file_)->public_key(), key_pair(1).public_key());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1) << "something was left there";
}

TEST_F(KeyFile, one_that_others_may_use_is_refused_with_the_command_that_helps) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0666}) {
    ASSERT_EQ(::chmod(file_.c_str(), mode), 0);
    const auto key = read_key_file(file_);
    ASSERT_FALSE(key) << mode;
    EXPECT_EQ(key.error().code, TC_ERR_DENIED);
    EXPECT_THAT(key.error().message, HasSubstr("`chmod 600 " + file_.string() + "`"));
  }
  ASSERT_EQ(::chmod(file_.c_str(), 0400), 0);
  EXPECT_TRUE(read_key_file(file_));
}

TEST_F(KeyFile, one_of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  ASSERT_EQ(::chown(file_.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  const auto key = read_key_file(file_);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, TC_ERR_DENIED);
  EXPECT_THAT(key.error().message, HasSubstr("belongs to user 12345"));
}

TEST_F(KeyFile, a_pipe_does_not_block) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(read_key_file(file_).error().code, TC_ERR_INVALID);
}

TEST_F(KeyFile, every_part_of_a_key_alone_and_every_wrong_character_is_refused) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  const auto bytes = read_file(file_, 1000).value();
  const std::string whole(as_text(bytes));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_private_key(whole.substr(0, size), file_).error().code, TC_ERR_MALFORMED) << size;
  for (size_t at = 0; at < whole.size(); ++at) {
    auto wrong = whole;
    wrong[at] = '*';
    EXPECT_EQ(parse_private_key(wrong, file_).error().code, TC_ERR_MALFORMED) << at;
  }
}

TEST_F(KeyFile, a_message_does_not_show_what_may_be_a_key) {
  const std::string text = "threechains-private-key 1 secretsecretsecretsecret\n";
  write(text + text + text);
  const auto key = read_key_file(file_);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(key.error().message, HasSubstr("a key is one line of 70 bytes, and this is more"));
  EXPECT_THAT(key.error().message, Not(HasSubstr("secret")));
}

TEST_F(KeyFile, keys_are_found_by_name_and_by_path) {
  ASSERT_TRUE(write_key_file(key_path("node").value(), key_pair(1)));
  ASSERT_TRUE(write_key_file(file_, key_pair(2)));
  EXPECT_EQ(find_key("node")->public_key(), key_pair(1).public_key());
  EXPECT_EQ(find_key(file_.string())->public_key(), key_pair(2).public_key());
  const auto none = find_key("other");
  EXPECT_EQ(none.error().code, TC_ERR_NOT_FOUND);
  EXPECT_THAT(none.error().message, HasSubstr("`ifunc key new other`"));
  EXPECT_EQ(find_key("..").error().code, TC_ERR_INVALID);
}

TEST_F(KeyFile, keys_are_listed_by_name) {
  EXPECT_TRUE(list_keys()->empty());
  for (const auto* const name : {"node", "ana"}) ASSERT_TRUE(write_key_file(key_path(name).value(), key_pair(1)));
  EXPECT_THAT(list_keys().value(), ElementsAre("ana", "node"));
}

TEST_F(KeyFile, the_home_is_what_the_first_variable_says) {
  ::setenv("XDG_CONFIG_HOME", "/config", 1);
  EXPECT_EQ(home().value(), home_);
  ::unsetenv("THREECHAINS_HOME");
  EXPECT_EQ(home().value(), "/config/threechains");
  ::setenv("XDG_CONFIG_HOME", "", 1);
  const std::string user = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::setenv("HOME", "/user", 1);
  EXPECT_EQ(home().value(), "/user/.config/threechains");
  ::unsetenv("HOME");
  EXPECT_EQ(home().error().code, TC_ERR_NOT_FOUND);
  ::setenv("HOME", user.c_str(), 1);
  ::unsetenv("XDG_CONFIG_HOME");
}

// ---- Signatures of code

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
