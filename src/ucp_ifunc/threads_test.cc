// SPDX-License-Identifier: Apache-2.0
//
// One ifunc on several threads at once.
#include <atomic>
#include <thread>
#include <vector>

#include "ucp_ifunc/testing/endpoints.h"

namespace tc::ucp_testing {

namespace {

class UcpThreads : public UcpIfunc, public ::testing::WithParamInterface<const char*> {
 protected:
  UcpThreads() { use(GetParam()); }
  // In memory of the caller's own, written by copying the frame.
  ucs_status_t run(const ucp_ifunc_msg_t& msg, void* args) {
    std::vector<char> slot(static_cast<const char*>(msg.frame), static_cast<const char*>(msg.frame) + msg.frame_size);
    return ucp_poll_ifunc(target.context, slot.data(), slot.size(), args, nullptr);
  }
};

TEST_P(UcpThreads, calls_that_fail_on_one_thread_do_not_end_calls_on_another) {
  const auto ifunc = registered(source, "sometimes");
  auto good = message(ifunc, "good"), bad = message(ifunc, "x");
  unsigned long first = 0;
  ASSERT_EQ(run(good, &first), UCS_OK) << ucp_ifunc_error();
  std::atomic<bool> over = false;
  std::atomic<unsigned long> failed = 0, not_failed = 0;
  std::thread other([&] {
    unsigned long count = 0;
    while (!over) ++(run(bad, &count) == UCS_ERR_CANCELED ? failed : not_failed);
    if (count != 0) ++not_failed;
  });
  while (failed < 10) std::this_thread::yield();
  constexpr unsigned long calls = 100'000;
  unsigned long count = 0, refused = 0;
  for (unsigned long i = 0; i < calls; ++i) refused += run(good, &count) != UCS_OK;
  over = true;
  other.join();
  EXPECT_EQ(count, calls);
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(not_failed, 0u);
  ucp_ifunc_msg_free(good);
  ucp_ifunc_msg_free(bad);
}

INSTANTIATE_TEST_SUITE_P(Forms, UcpThreads, ::testing::Values("object", "bitcode"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace

}  // namespace tc::ucp_testing
