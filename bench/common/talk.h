// SPDX-License-Identifier: Apache-2.0
//
// The two processes of a benchmark agree on what comes next by lines of text over a socket pair, outside of what is
// measured. Thread: one for each object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/result.h"

namespace tc::bench {

class Talk {
 public:
  explicit Talk(Fd socket) : fd_(std::move(socket)) {}

  Status say(const std::string& line);
  // The next line; `meanwhile` is called over and over while waiting, without it this thread sleeps.
  // TC_ERR_DISCONNECTED when the other ended, TC_ERR_TIMEOUT. A line "error TEXT" is the other's error.
  Result<std::string> hear(Deadline deadline, const std::function<void()>& meanwhile = {});

 private:
  Fd fd_;
  std::string buffer_;
};

// A process of this program that runs `arguments`. It dies with us, and is ended by the destructor.
class Partner {
 public:
  // `before_exec`, when given, runs in the new process before its program (base/process.h); false ends it.
  static Result<std::unique_ptr<Partner>> start(std::vector<std::string> arguments,
                                                const std::function<bool()>& before_exec = {});
  Talk& talk() noexcept { return talk_; }
  // How it ended ("was killed by signal 9 (Killed)", "ended with exit code 1: " and an error that it sent and that
  // was not read); empty while it runs.
  const std::string& end();

 private:
  Partner(ChildProcess process, Fd socket) : process_(std::move(process)), talk_(std::move(socket)) {}
  ChildProcess process_;
  std::string end_;
  Talk talk_;
};

// What a partner's process does: `serve` talks with the process that started it. Its error is sent there. The exit code.
int run_as_partner(const std::function<Status(Talk&)>& serve);

}  // namespace tc::bench
