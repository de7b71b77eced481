// SPDX-License-Identifier: Apache-2.0
#include "node/remote_compile/compile_service.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/plugin.h"
#include "base/quiet_thread.h"
#include "node/remote_compile/compiler_process.h"

namespace tc::node {

namespace {
// What others can make us keep: jobs, and the bitcode in them.
constexpr size_t waiting_limit = 64;
constexpr size_t waiting_bytes_limit = 64u * 1024 * 1024;
}  // namespace

Result<std::filesystem::path> CompileService::find_compiler(const std::string& wish) {
  const auto is_program = [](const std::filesystem::path& path) { return ::access(path.c_str(), X_OK) == 0; };
  std::filesystem::path path = wish;
  if (wish.empty()) {
    constexpr const char* program = "libexec/threechains/ifunc-toolchain";
    const auto above = own_folder().parent_path();
    const char* const libexec = std::getenv("TC_LIBEXEC");
    path = libexec != nullptr ? std::filesystem::path(libexec) / "ifunc-toolchain" : above / program;
    if (const auto other = above.parent_path() / program;  // of a library in lib/ARCH-linux-gnu
        libexec == nullptr && !is_program(path) && is_program(other))
      return other;
  }
  if (is_program(path)) return path;
  return fail(TC_ERR_NOT_FOUND,
              "compile-for is set, and there is no program {} to compile with: build with TC_TOOLCHAIN, or name it by "
              "the setting compiler",
              path.string());
}

CompileService::CompileService(std::filesystem::path compiler, std::function<void()> wake)
    : compiler_(std::move(compiler)), wake_(std::move(wake)), thread_(quiet_thread([this] { work(); })) {}

CompileService::~CompileService() {
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
    auto object = compile(compiler_, job, cancelled_);
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
