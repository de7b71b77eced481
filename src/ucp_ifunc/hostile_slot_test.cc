// SPDX-License-Identifier: Apache-2.0
//
// Frames in a slot that are cut off, damaged or land twice.
#include "ucp_ifunc/testing/endpoints.h"

namespace tc::ucp_testing {

namespace {

// What lies in a slot may be anything: each frame cut off or damaged at each of its bytes.
class HostileSlot : public UcpIfunc {
 protected:
  // A frame with its code, as it lands.
  std::string frame() {
    auto msg = message(registered(source, "step"));
    EXPECT_EQ(road.send(msg), UCS_OK);
    std::string bytes(target.memory, msg.frame_size);
    std::memset(target.memory, 17, target.size);
    ucp_ifunc_msg_free(msg);
    return bytes;
  }
  ucs_status_t poll_bytes(const std::string& bytes, size_t room) {
    std::memcpy(target.memory, bytes.data(), bytes.size());
    const auto status = target.poll(&result, 0, room);
    std::memset(target.memory, 17, bytes.size());
    return status;
  }
};

TEST_F(HostileSlot, a_buffer_shorter_than_its_frame_is_too_small_whatever_the_frame) {
  const auto bytes = frame();
  for (size_t room = 0; room < bytes.size(); ++room) {
    const auto status = poll_bytes(bytes, room);
    ASSERT_EQ(status, room < 48 ? UCS_ERR_NO_MESSAGE : UCS_ERR_BUFFER_TOO_SMALL) << room;
  }
  EXPECT_EQ(poll_bytes(bytes, bytes.size()), UCS_OK);
}

TEST_F(HostileSlot, a_flipped_bit_gives_a_status_and_never_runs_damaged_code) {
  const auto bytes = frame();
  for (size_t bit = 0; bit < bytes.size() * 8; bit += bit < 2048 ? 1 : 5) {
    const size_t at = bit / 8;
    if (at >= 48 && at < 64) continue;  // payload and its padding: the ifunc's own
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit % 8);
    const auto before = result.sum;
    const auto status = poll_bytes(damaged, 1 << 14);
    if (status == UCS_OK) {
      // What means nothing: the last bytes are padding, four in front of the bundle are reserved.
      EXPECT_TRUE(at > bytes.size() - 16 || (at >= 64 + 44 && at < 64 + 48)) << "bit " << bit << " of byte " << at;
      ucp_ifunc_release(target.context);
    } else {
      EXPECT_EQ(result.sum, before);
    }
  }
}

TEST_F(HostileSlot, a_frame_that_never_becomes_whole_is_given_up) {
  auto bytes = frame();
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  std::memcpy(target.memory, bytes.data(), bytes.size());
  EXPECT_EQ(target.poll_until(&result), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE);
  EXPECT_EQ(result.sum, 0u);
}

TEST_F(HostileSlot, a_frame_that_was_put_and_lands_a_second_time_does_not_run_again) {
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg, 4), UCS_OK);  // not a multiple of 8: it is put
  std::string bytes(target.memory + 4, msg.frame_size);
  auto status = UCS_ERR_NO_MESSAGE;
  while (status == UCS_ERR_NO_MESSAGE) {
    bytes.assign(target.memory + 4, msg.frame_size);
    status = target.poll(&result, 4);
  }
  ASSERT_EQ(status, UCS_OK);
  std::memcpy(target.memory + 4, bytes.data(), bytes.size());
  EXPECT_EQ(target.poll(&result, 4), UCS_ERR_NO_MESSAGE);
  EXPECT_EQ(result.sum, 1u);
  ucp_ifunc_msg_free(msg);
}

}  // namespace

}  // namespace tc::ucp_testing
