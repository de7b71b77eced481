// SPDX-License-Identifier: Apache-2.0
#include "node/remote_compile/compile_service.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/no_memory.h"
#include "base/plugin.h"
#include "base/process.h"
#include "base/quiet_thread.h"

namespace tc::node {

namespace fs = std::filesystem;

namespace {
// What others can make us keep: jobs, and the bitcode in them.
constexpr size_t waiting_limit = 64;
constexpr size_t waiting_bytes_limit = 64u * 1024 * 1024;

// How often a running compiler's job is checked for having been cancelled. A compilation takes tens of milliseconds.
constexpr uint64_t cancel_poll_ms = 2;
constexpr size_t output_limit = 1000;

// The compiler's temporary files go where we remove them, also when it is killed. Its group includes the linker.
SpawnOptions compiler_options(const TemporaryDirectory& scratch) {
  return {.environment = {"TMPDIR=" + scratch.path().string()},
          .input = -1,
          .output = Output::captured,
          .errors = Output::captured,
          .output_limit = output_limit,
          .own_group = true};
}

// How it ended; nothing when its time was up or the job was cancelled.
std::optional<ExitStatus> wait_for(ChildProcess& compiler, uint64_t until_ns, const std::atomic<bool>& cancelled) {
  while (true) {
    if (const auto exit = compiler.wait(Deadline::after_ms(cancel_poll_ms))) return exit;
    if (now_ns() >= until_ns || cancelled.load()) return std::nullopt;
  }
}

std::string output_of(ChildProcess& compiler) {
  auto text = compiler.take_output();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.empty() ? "it printed nothing" : text;
}

// Runs `compiler` on the job's bitcode, in a process of its own, and waits, at most until the job's time is up or `cancelled`
// is set. The object slice; TC_ERR_COMPILE with the compiler's words, TC_ERR_TIMEOUT, TC_ERR_MALFORMED for a slice that cannot
// be unpacked.
Result<Bytes> compile(const fs::path& compiler, const CompileService::Job& job, const std::atomic<bool>& cancelled) {
  if (now_ns() >= job.until_ns)
    return fail(TC_ERR_TIMEOUT, "the compilation did not start within {} ms, because others were before it",
                job.limit_ms);
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
  TC_ASSIGN(auto child, ChildProcess::spawn(arguments, compiler_options(scratch)));
  const auto exit = wait_for(child, job.until_ns, cancelled);
  if (!exit) return fail(TC_ERR_TIMEOUT, "compiling took longer than {} ms and was ended", job.limit_ms);
  if (exit->signal != 0)
    return fail(TC_ERR_COMPILE, "the compiler was ended by signal {}: {}", exit->signal, output_of(child));
  if (exit->code != 0) return fail(TC_ERR_COMPILE, "{}", output_of(child));
  return read_file(scratch.file("out.o"), BundleLimits::slice_bytes);
}

// Nothing may leave the thread.
Result<Bytes> compile_or_error(const fs::path& compiler, const CompileService::Job& job,
                               const std::atomic<bool>& cancelled) noexcept try {
  return compile(compiler, job, cancelled);
} catch (const std::bad_alloc&) {
  return fail(error_in_any_case(TC_ERR_NO_MEMORY, "no memory"));
} catch (const std::exception& problem) {
  return fail(error_in_any_case(TC_ERR_IO, problem.what()));
}

}  // namespace

Result<std::filesystem::path> CompileService::find_compiler(const std::string& wish) {
  const auto path = wish.empty() ? own_program("ifunc-toolchain") : std::filesystem::path(wish);
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(TC_ERR_NOT_FOUND,
              "compile-for is set, and there is no program {} to compile with: build with TC_TOOLCHAIN, or name it by "
              "the setting compiler",
              path.string());
}

Status CompileService::start() {
  auto thread = quiet_thread([this] { work(); });
  if (!thread) return context("compile-for: no thread can be started", std::move(thread).error());
  thread_ = std::move(*thread);
  return {};
}

CompileService::~CompileService() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    cancelled_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status CompileService::add(Job job) {
  const std::lock_guard lock(mutex_);
  size_t bytes = job.slice.stored.size();
  for (const auto& other : waiting_) bytes += other.slice.stored.size();
  if (waiting_.size() >= waiting_limit || (!waiting_.empty() && bytes > waiting_bytes_limit))
    return fail(TC_ERR_BUSY, "{} ifuncs wait to be compiled here already; try again later", waiting_.size());
  waiting_.push_back(std::move(job));
  changed_.notify_all();
  return {};
}

void CompileService::forget(uint64_t link) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const auto& job) { return job.link == link; });
  if (running_link_ == link) cancelled_ = true;
}

std::vector<CompileService::Done> CompileService::take() {
  const std::lock_guard lock(mutex_);
  has_done_ = false;
  return std::exchange(done_, {});
}

void CompileService::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const auto job = std::move(waiting_.front());
    waiting_.pop_front();
    running_link_ = job.link;
    cancelled_ = false;
    lock.unlock();
    auto object = compile_or_error(compiler_, job, cancelled_);
    lock.lock();
    running_link_ = 0;
    done_.push_back({job.link, job.token, std::move(object)});
    has_done_.store(true, std::memory_order_release);
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace tc::node
