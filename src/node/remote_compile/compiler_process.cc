// SPDX-License-Identifier: Apache-2.0
#include "node/remote_compile/compiler_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/temporary_directory.h"

extern char** environ;

namespace tc::node {

namespace fs = std::filesystem;

namespace {

// How often a running compiler is looked at. It takes tens of milliseconds.
constexpr useconds_t look_us = 2000;
constexpr size_t words_limit = 64 * 1024;
constexpr size_t words_told = 1000;

// Our environment, but for where temporary files go.
std::vector<std::string> environment(const TemporaryDirectory& scratch) {
  std::vector<std::string> all{"TMPDIR=" + scratch.path().string()};
  for (char** one = environ; *one != nullptr; ++one)
    if (std::strncmp(*one, "TMPDIR=", 7) != 0) all.emplace_back(*one);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (auto& one : strings) all.push_back(one.data());
  all.push_back(nullptr);
  return all;
}

// A group of its own, so that the linker that it starts ends with it, and none of our blocked signals.
Result<pid_t> spawn(std::vector<std::string> arguments, const TemporaryDirectory& scratch) {
  auto variables = environment(scratch);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, scratch.file("words").c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(TC_ERR_IO, "cannot run {}: {}", arguments[0], std::strerror(error));
  return child;
}

// Its wait status; nothing when it had to be killed.
std::optional<int> wait_for(pid_t child, uint64_t until_ns, const std::atomic<bool>& cancelled) {
  int status = 0;
  while (true) {
    const auto ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (now_ns() >= until_ns || cancelled.load()) {
      ::kill(-child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return std::nullopt;
    }
    ::usleep(look_us);
  }
  ::kill(-child, SIGKILL);  // what it may have left behind
  return status;
}

// What it printed, the scratch directory's name left out.
std::string words_of(const TemporaryDirectory& scratch) {
  const auto bytes = read_file(scratch.file("words"), words_limit);
  if (!bytes) return "no words";
  std::string text(as_text(*bytes).substr(0, words_told));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.empty() ? "no words" : text;
}

}  // namespace

Result<Bytes> compile(const fs::path& compiler, const CompileService::Job& job, const std::atomic<bool>& cancelled) {
  if (now_ns() >= job.until_ns)
    return fail(TC_ERR_TIMEOUT, "its turn to be compiled did not come within {} ms", job.limit_ms);
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto& slice = job.slice;
  Bytes bitcode;
  if (slice.about.compressed) {
    TC_ASSIGN(bitcode, decompress(slice.stored, slice.about.unpacked_size));
  } else {
    bitcode = slice.stored;
  }
  TC_CHECK(write_file_atomically(scratch.file("in.bc"), bitcode));
  std::vector<std::string> arguments{compiler.string(), "compile", "--name=" + slice.name, "--target=" + job.triple,
                                     "--limit-ms=" + std::to_string(job.limit_ms)};
  if (!job.cpu.empty()) arguments.push_back("--cpu=" + job.cpu);
  if (!job.features.empty()) arguments.push_back("--features=" + job.features);
  arguments.push_back(scratch.file("in.bc"));
  arguments.push_back(scratch.file("out.o"));
  TC_ASSIGN(const auto child, spawn(std::move(arguments), scratch));
  const auto status = wait_for(child, job.until_ns, cancelled);
  if (!status) return fail(TC_ERR_TIMEOUT, "compiling took longer than {} ms and was ended", job.limit_ms);
  if (WIFSIGNALED(*status))
    return fail(TC_ERR_COMPILE, "the compiler was ended by signal {}: {}", WTERMSIG(*status), words_of(scratch));
  if (WEXITSTATUS(*status) != 0) return fail(TC_ERR_COMPILE, "{}", words_of(scratch));
  return read_file(scratch.file("out.o"), BundleLimits::slice_bytes);
}

}  // namespace tc::node
