// SPDX-License-Identifier: Apache-2.0
#include "node/remote_compile/compiler_process.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"

namespace tc::node {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

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

}  // namespace tc::node
