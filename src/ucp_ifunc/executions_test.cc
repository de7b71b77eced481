// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/executions.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace tc::ucp {
namespace {

TEST(Executions, nothing_is_over_that_was_not_begun) {
  Executions executions;
  EXPECT_FALSE(executions.is_over());
  executions.begin();
  EXPECT_TRUE(executions.is_over()) << "nobody is inside";
  executions.end();
  EXPECT_FALSE(executions.is_over());
}

TEST(Executions, who_was_inside_is_waited_for_and_who_comes_later_is_not) {
  Executions executions;
  const auto early = executions.enter();
  executions.begin();
  const auto late = executions.enter();
  EXPECT_FALSE(executions.is_over());
  executions.leave(early);
  EXPECT_TRUE(executions.is_over());
  executions.end();
  executions.begin();
  EXPECT_FALSE(executions.is_over()) << "now the late one is waited for";
  executions.leave(late);
  EXPECT_TRUE(executions.is_over());
}

TEST(Executions, one_may_be_inside_another) {
  Executions executions;
  const auto outer = executions.enter();
  executions.begin();
  executions.leave(executions.enter());
  EXPECT_FALSE(executions.is_over());
  executions.leave(outer);
  EXPECT_TRUE(executions.is_over());
}

// What the store does with code: an old version is changed, as freeing it would, once it is left.
TEST(Executions, nobody_is_in_a_version_that_was_left) {
  struct Version {
    bool freed = false;
  };
  constexpr unsigned swaps = 2000;
  std::vector<Version> versions(swaps + 1);
  std::atomic<Version*> entry{&versions[0]};
  Executions executions;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      while (!stop) {
        const auto phase = executions.enter();
        const auto* const version = entry.load(std::memory_order_acquire);
        if (version->freed) ++wrong;
        std::this_thread::yield();
        if (version->freed) ++wrong;
        executions.leave(phase);
      }
    });
  for (unsigned i = 0; i < swaps; ++i) {
    entry.store(&versions[i + 1], std::memory_order_release);
    executions.begin();
    while (!executions.is_over()) std::this_thread::yield();
    versions[i].freed = true;
    executions.end();
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace tc::ucp
