// SPDX-License-Identifier: Apache-2.0
#include "simulation/outcome.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace tc::simulation {

namespace {

// What the child writes, and behind it the message of its error.
struct Report {
  tc_status_t status = TC_OK;
  uint64_t hash = 0, turns = 0, failed_allocations = 0;
  Books::Sums sums;
};

void write_all(int to, ByteView bytes) {
  while (!bytes.empty()) {
    const auto wrote = ::write(to, bytes.data(), bytes.size());
    if (wrote <= 0) ::_exit(3);
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
}

std::string read_all(int from) {
  std::string text;
  for (std::array<char, 4096> part;;) {
    const auto got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

[[noreturn]] void report(int to, const Outcome& outcome) {
  const Report said{.status = outcome.status ? TC_OK : outcome.status.error().code,
                    .hash = outcome.hash,
                    .turns = outcome.turns,
                    .failed_allocations = outcome.failed_allocations,
                    .sums = outcome.sums};
  write_all(to, std::as_bytes(std::span(&said, 1)));
  if (!outcome.status) write_all(to, as_bytes(outcome.status.error().message));
  ::_exit(0);
}

Outcome read_report(const std::string& text, int ended) {
  Report said;
  if (WIFSIGNALED(ended))
    return {.status =
                fail(TC_ERR_INTERNAL, "a node crashed: signal {} ({})", WTERMSIG(ended), ::strsignal(WTERMSIG(ended)))};
  if (text.size() < sizeof said)
    return {.status = fail(TC_ERR_INTERNAL, "its process ended with {}", WEXITSTATUS(ended))};
  std::memcpy(&said, text.data(), sizeof said);
  Outcome outcome{.status = {},
                  .hash = said.hash,
                  .turns = said.turns,
                  .failed_allocations = said.failed_allocations,
                  .sums = said.sums};
  if (said.status != TC_OK) outcome.status = fail(Error{said.status, text.substr(sizeof said)});
  return outcome;
}

}  // namespace

Outcome outcome_in_child(const std::function<Outcome()>& simulate) {
  int ends[2];
  if (::pipe(ends) != 0) return {.status = fail(TC_ERR_INTERNAL, "pipe: {}", std::strerror(errno))};
  const auto child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    report(ends[1], simulate());
  }
  ::close(ends[1]);
  const auto text = child > 0 ? read_all(ends[0]) : std::string();
  ::close(ends[0]);
  int ended = 0;
  if (child < 0 || ::waitpid(child, &ended, 0) != child)
    return {.status = fail(TC_ERR_INTERNAL, "fork: {}", std::strerror(errno))};
  return read_report(text, ended);
}

}  // namespace tc::simulation
