// SPDX-License-Identifier: Apache-2.0
//
// The two processes of a benchmark agree on what comes next by lines of text over a socket pair, outside of what is
// measured.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace tc::bench {

class Talk {
 public:
  explicit Talk(int fd) : fd_(fd) {}
  ~Talk();
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  Status say(const std::string& line);
  // The next line; `meanwhile` is called over and over while waiting, without it this thread sleeps.
  // TC_ERR_DISCONNECTED when the other ended, TC_ERR_TIMEOUT. A line "error TEXT" is the other's error.
  Result<std::string> hear(Deadline deadline, const std::function<void()>& meanwhile = {});

 private:
  int fd_;
  std::string buffer_;
};

// A process of this program that runs `arguments`, with one end of a socket pair as file descriptor 3. It dies with
// us, and is ended by the destructor.
class Partner {
 public:
  // `prepare`, when given, runs in the new process before its program; false ends it.
  static Result<std::unique_ptr<Partner>> start(const std::vector<std::string>& arguments,
                                                const std::function<bool()>& prepare = {});
  ~Partner();
  Talk& talk() noexcept { return talk_; }
  // How it ended ("was killed by signal 9 (Killed)", "ended with exit code 1: " and the error that it said
  // and nobody heard); empty while it runs.
  const std::string& end();

 private:
  Partner(pid_t pid, int fd) : pid_(pid), talk_(fd) {}
  pid_t pid_;  // 0 once it ended
  std::string end_;
  Talk talk_;
};

}  // namespace tc::bench
