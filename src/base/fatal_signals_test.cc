// SPDX-License-Identifier: Apache-2.0
//
// Fatal signals, each in a child process.
#include "base/fatal_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

namespace tc {
namespace {

// What is told is written there.
int told_to = -1;

void note(const Fault& fault) noexcept {
  const char said[] = {static_cast<char>(fault.signal), fault.is_last ? 'l' : 'h',
                       fault.address == nullptr ? '0' : '1'};
  (void)!::write(told_to, said, sizeof said);
}

struct Ended {
  std::string told;
  int status = 0;
};

// Runs `body` in a child, and gives what was told and how the child ended.
Ended end_of_child(const std::function<void()>& body) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGABRT}) ::signal(number, SIG_DFL);  // a sanitizer has handlers
    told_to = ends[1];
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended;
  char buffer[64];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    ended.told.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, &ended.status, 0), child);
  return ended;
}

const char segv_is_last[] = {SIGSEGV, 'l', '0', '\0'};
const char segv_is_handled[] = {SIGSEGV, 'h', '0', '\0'};

[[gnu::no_sanitize("all")]] void store_to_null() { *static_cast<volatile int* volatile>(nullptr) = 1; }

TEST(FatalSignals, a_bad_access_is_told_once_and_ends_the_process_as_ever) {
  const auto ended = end_of_child([] {
    const FatalSignals signals(note);
    const FatalSignals more(note);
    store_to_null();
  });
  EXPECT_EQ(ended.told, segv_is_last);
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGSEGV);
}

TEST(FatalSignals, a_signal_that_was_sent_ends_the_process_as_well) {
  const auto ended = end_of_child([] {
    const FatalSignals signals(note);
    ::raise(SIGABRT);
  });
  EXPECT_EQ(ended.told.substr(0, 2), (std::string{SIGABRT, 'l'}));
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGABRT);
}

TEST(FatalSignals, the_handler_that_the_program_had_runs_afterwards) {
  const auto ended = end_of_child([] {
    ::signal(SIGSEGV, [](int) {
      (void)!::write(told_to, "program", 7);
      ::_exit(7);
    });
    const FatalSignals signals(note);
    store_to_null();
  });
  EXPECT_EQ(ended.told, segv_is_handled + std::string("program"));
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7);
}

TEST(FatalSignals, a_handler_that_came_later_may_hand_on_to_ours_also_after_the_last_user) {
  const auto ended = end_of_child([] {
    static struct sigaction ours;
    struct sigaction later{};
    later.sa_flags = SA_SIGINFO;
    later.sa_sigaction = [](int number, siginfo_t* info, void* context) { ours.sa_sigaction(number, info, context); };
    {
      const FatalSignals signals(note);
      ::sigaction(SIGSEGV, &later, &ours);
    }
    const FatalSignals again(note);
    store_to_null();
  });
  EXPECT_EQ(ended.told, segv_is_last);
  EXPECT_TRUE(WIFSIGNALED(ended.status));
}

TEST(FatalSignals, nothing_is_left_of_them_with_the_last_user) {
  const auto ended = end_of_child([] {
    {
      const FatalSignals signals(note);
    }
    struct sigaction now{};
    ::sigaction(SIGSEGV, nullptr, &now);
    ::_exit(now.sa_handler == SIG_DFL ? 7 : 8);
  });
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7);
}

volatile bool goes_on = true;

[[gnu::no_sanitize("all")]] int dig(volatile const char* above) {  // NOLINT
  volatile char room[1024];
  room[0] = above != nullptr ? above[0] : 'x';
  return goes_on ? dig(room) + room[0] : 0;
}

TEST(FatalSignals, the_end_of_a_stack_is_told_from_a_stack_of_its_own) {
  const auto ended = end_of_child([] {
    const FatalSignals signals(note);
    std::thread([] {
      have_alternate_stack();
      have_alternate_stack();
      told_to += dig(nullptr);
    }).join();
  });
  EXPECT_EQ(ended.told.substr(0, 2), (std::string{SIGSEGV, 'l'}));
  EXPECT_TRUE(WIFSIGNALED(ended.status));
}

}  // namespace
}  // namespace tc
