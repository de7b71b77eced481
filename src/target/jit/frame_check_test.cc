// SPDX-License-Identifier: Apache-2.0
#include "target/jit/frame_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace tc::target::jit {
namespace {

using testing::HasSubstr;

constexpr uint8_t pc_relative_4 = 0x1b, pc_relative_8 = 0x1c, absolute_8 = 0x00;

// Text, and a table right behind it, as one image has them.
class FrameCheck : public testing::Test {
 protected:
  static constexpr size_t text_bytes = 256;

  // The common part that compilers write, with those letters; every letter has one byte, a personality four more.
  void add_common(std::string_view letters, uint8_t encoding = pc_relative_4, uint8_t version = 1) {
    common_ = image_.size();
    Bytes body;
    Writer out(body);
    out.u32(0).u8(version).bytes(as_bytes(letters)).u8(0).u8(1).u8(0x78).u8(16);
    if (letters.starts_with('z')) out.u8(7);
    if (letters.contains('P')) out.u8(0x9b).u32(8);
    if (letters.contains('L')) out.u8(0x1b);
    if (letters.contains('R')) out.u8(encoding);
    add_record(body);
  }
  // An entry for `size` bytes from `begin` of the text on; `back`: more than the way to the common part.
  void add_entry(int64_t begin, uint64_t size, uint8_t encoding = pc_relative_4, uint32_t back = 0) {
    Bytes body;
    Writer out(body);
    const auto here = image_.size() + 4;
    out.u32(static_cast<uint32_t>(here - common_) + back);
    const auto distance = begin - static_cast<int64_t>(here + 4);
    if (encoding == pc_relative_4)
      out.u32(static_cast<uint32_t>(distance)).u32(static_cast<uint32_t>(size));
    else if (encoding == pc_relative_8)
      out.u64(static_cast<uint64_t>(distance)).u64(size);
    else
      out.u64(reinterpret_cast<uintptr_t>(image_.data()) + static_cast<uint64_t>(begin)).u64(size);
    out.u8(0);
    add_record(body);
  }
  void end() { Writer(image_).u32(0); }

  Status check() const {
    return check_frames(std::span(image_).subspan(text_bytes), std::span(image_).first(text_bytes));
  }
  void expect_refused(const std::string& why) const {
    const auto checked = check();
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, TC_ERR_COMPILE);
    EXPECT_THAT(checked.error().message, HasSubstr(why));
  }

  void SetUp() override {
    image_.reserve(8192);  // it does not move
    image_.resize(text_bytes);
  }

  Bytes image_;
  size_t common_ = 0;

 private:
  void add_record(Bytes& body) {
    while (body.size() % 4 != 0) body.push_back(std::byte{0});
    Writer(image_).u32(static_cast<uint32_t>(body.size())).bytes(body);
  }
};

TEST_F(FrameCheck, entries_of_its_own_code_are_taken_in_each_form_that_compilers_write) {
  for (const auto* letters : {"zR", "zLR", "zPR", "zPLR", "zRS", "zPLRS", "zRB"})
    for (const auto encoding : {pc_relative_4, pc_relative_8, absolute_8})
      for (const uint8_t version : {1, 3}) {
        image_.resize(text_bytes);
        add_common(letters, encoding, version);
        add_entry(0, text_bytes, encoding);
        add_entry(16, 1, encoding);
        add_entry(text_bytes - 1, 1, encoding);
        add_common("");
        add_entry(0, text_bytes, absolute_8);
        end();
        const auto checked = check();
        EXPECT_TRUE(checked) << letters << " " << int(encoding) << ": " << checked.error().message;
      }
}

TEST_F(FrameCheck, an_empty_table_is_taken) {
  end();
  EXPECT_TRUE(check());
}

TEST_F(FrameCheck, what_lies_behind_the_end_is_not_read) {
  end();
  image_.resize(image_.size() + 40, std::byte{0xff});
  EXPECT_TRUE(check());
}

TEST_F(FrameCheck, an_entry_of_code_of_others_is_refused) {
  struct Claim {
    int64_t begin;
    uint64_t size;
  };
  for (const auto encoding : {pc_relative_4, pc_relative_8, absolute_8})
    for (const auto claim : {Claim{-1, 1}, Claim{-1, 2}, Claim{0, text_bytes + 1}, Claim{1, text_bytes},
                             Claim{text_bytes, 1}, Claim{0, 0xffffffff}, Claim{-4096, 0x7fffffff}}) {
      image_.resize(text_bytes);
      add_common("zR", encoding);
      add_entry(0, text_bytes, encoding);
      add_entry(claim.begin, claim.size, encoding);
      end();
      expect_refused("speaks of");
    }
}

TEST_F(FrameCheck, a_size_that_wraps_is_refused) {
  add_common("zR", absolute_8);
  add_entry(16, UINT64_MAX - 8, absolute_8);
  end();
  expect_refused("speaks of");
}

// libgcc reads a size with its sign.
TEST_F(FrameCheck, a_small_size_that_an_unwinder_takes_for_a_negative_one_is_refused) {
  constexpr uint8_t signed_2 = 0x1a;
  image_.resize(text_bytes);
  add_common("zR", signed_2);
  Bytes body;
  Writer(body)
      .u32(static_cast<uint32_t>(image_.size() + 4 - common_))
      .u16(static_cast<uint16_t>(-static_cast<int>(image_.size() + 8)))
      .u16(0xffff);
  Writer(image_).u32(static_cast<uint32_t>(body.size())).bytes(body);
  end();
  expect_refused("speaks of");
}

TEST_F(FrameCheck, augmentations_that_unwinders_read_differently_are_refused) {
  for (const auto* letters : {"zSR", "zBR", "zRR", "zRP", "eh", "R", "zX", "z", "zLPR", "zRSB"}) {
    image_.resize(text_bytes);
    add_common(letters);
    end();
    expect_refused("augmentation");
  }
}

TEST_F(FrameCheck, addresses_of_other_encodings_are_refused) {
  for (const uint8_t encoding : {0x9b, 0x3b, 0x2b, 0x50, 0x01, 0x09, 0xff}) {
    image_.resize(text_bytes);
    add_common("zR", encoding);
    add_entry(0, 1);
    end();
    ASSERT_FALSE(check()) << int(encoding);
  }
}

TEST_F(FrameCheck, an_entry_whose_common_part_is_no_record_before_it_is_refused) {
  for (const uint32_t more : {1u, 4u, 0x10000u, static_cast<uint32_t>(-4)}) {
    image_.resize(text_bytes);
    add_common("zR");
    add_entry(0, 1, pc_relative_4, more);
    end();
    expect_refused("common part");
  }
}

TEST_F(FrameCheck, another_version_is_refused) {
  for (const uint8_t version : {0, 2, 4, 255}) {
    image_.resize(text_bytes);
    add_common("zR", pc_relative_4, version);
    end();
    expect_refused("version");
  }
}

TEST_F(FrameCheck, a_table_that_is_cut_anywhere_is_refused) {
  add_common("zPLR");
  add_entry(0, 1);
  end();
  const auto whole = image_;
  for (size_t size = text_bytes; size < whole.size(); ++size) {
    image_.assign(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(check()) << size;
  }
}

TEST_F(FrameCheck, no_changed_byte_makes_it_read_outside) {
  add_common("zPLR");
  add_entry(0, 1);
  end();
  const auto whole = image_;
  for (size_t at = text_bytes; at < whole.size(); ++at)
    for (const int value : {0, 1, 4, 0x7f, 0x80, 0xff}) {
      image_ = whole;
      image_[at] = static_cast<std::byte>(value);
      image_.shrink_to_fit();
      (void)check();  // the address sanitizer looks on
    }
}

}  // namespace
}  // namespace tc::target::jit
