// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "transport/origin.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

// A process that lives, having done `first`, until the test ends. 0: it could not do that here.
class Child {
 public:
  explicit Child(const std::function<bool()>& first) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      const char done = first() ? 1 : 0;
      if (write(ends[1], &done, 1) == 1) pause();
      _exit(0);
    }
    char done = 0;
    able_ = read(ends[0], &done, 1) == 1 && done == 1;
    close(ends[0]);
    close(ends[1]);
  }
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return able_ ? pid_ : 0; }

 private:
  pid_t pid_ = 0;
  bool able_ = false;
};

TEST(SameUser, is_whoever_has_our_number_in_our_namespace) {
  const Child child([] { return true; });
  EXPECT_TRUE(is_own_user({.pid = getpid(), .uid = geteuid(), .gid = 0}));
  EXPECT_TRUE(is_own_user({.pid = child.pid(), .uid = geteuid(), .gid = 0}));
  EXPECT_FALSE(is_own_user({.pid = child.pid(), .uid = geteuid() + 1, .gid = 0}));
  EXPECT_FALSE(is_own_user({.pid = 0, .uid = geteuid(), .gid = 0})) << "a process that we cannot see";
  EXPECT_THAT(why_not_own_user({.pid = 0, .uid = geteuid(), .gid = 0}), HasSubstr("cannot be seen"));
  EXPECT_EQ(why_not_own_user({.pid = child.pid(), .uid = geteuid(), .gid = 0}), "");
  EXPECT_EQ(why_not_own_user({.pid = child.pid(), .uid = geteuid() + 1, .gid = 0}), "") << "it has another number";
}

// The kernel says our own number of it, for it is our user's; but anything may run there.
TEST(SameUser, is_nobody_of_another_namespace) {
  const Child child([] { return unshare(CLONE_NEWUSER) == 0; });
  if (child.pid() == 0) GTEST_SKIP() << "no user namespaces here";
  EXPECT_FALSE(is_own_user({.pid = child.pid(), .uid = geteuid(), .gid = 0}));
  EXPECT_THAT(why_not_own_user({.pid = child.pid(), .uid = geteuid(), .gid = 0}), HasSubstr("another user namespace"));
}

TEST(SameUser, is_never_the_user_that_stands_for_all_others) {
  const Child child([] {
    if (unshare(CLONE_NEWUSER) != 0) return false;
    const ucred self{.pid = getpid(), .uid = geteuid(), .gid = 0};
    if (self.uid != 65534 || is_own_user(self)) _exit(1);
    if (!why_not_own_user(self).contains("stands for all users")) _exit(1);
    return true;
  });
  const Child other([] { return unshare(CLONE_NEWUSER) == 0; });
  if (other.pid() == 0) GTEST_SKIP() << "no user namespaces here";
  EXPECT_NE(child.pid(), 0) << "where no user has a number, whoever has none counts as our own";
}

}  // namespace
}  // namespace tc::transport
