// SPDX-License-Identifier: Apache-2.0
//
// The helper's side of remote compilation: it compiles for nodes without LLVM (code/compile_requests.h). Each job runs in a
// process of its own, `ifunc-toolchain compile`. So bitcode that makes LLVM crash, loop or eat memory costs only that
// process, and the helper can compile for every processor that LLVM knows. Jobs run one at a time, in the order in which
// they came, so that they leave the other cores to this node's own work.
//
// Threads: the node's, and one of the service's own, which only compiles.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "target/bitcode_builder.h"

namespace tc::node {

class CompileService {
 public:
  struct Job {
    uint64_t link = 0;  // id of the link to the caller
    uint64_t token = 0;
    std::string triple, cpu, features;
    target::BitcodeSlice slice;
    uint64_t until_ns = 0;
    uint32_t limit_ms = 0;  // for the message
  };
  struct Done {
    uint64_t link;
    uint64_t token;
    Result<Bytes> object;
  };

  // `compiler` is the program, ifunc-toolchain; `wake` is called from the service's thread when something is done.
  CompileService(std::filesystem::path compiler, std::function<void()> wake)
      : compiler_(std::move(compiler)), wake_(std::move(wake)) {}
  // Ends the job that runs.
  ~CompileService();
  CompileService(const CompileService&) = delete;
  CompileService& operator=(const CompileService&) = delete;

  // Starts the thread. TC_ERR_IO: there is none to be had.
  Status start();
  // TC_ERR_BUSY when too many jobs wait.
  Status add(Job job);
  // The link is gone, and with it the waiters of its jobs.
  void forget(uint64_t link);
  // True when take() returns something. Costs one load.
  bool has_done() const noexcept { return has_done_.load(std::memory_order_acquire); }
  std::vector<Done> take();

  // The program where it lies beside this library. TC_ERR_NOT_FOUND says where it was looked for.
  static Result<std::filesystem::path> find_compiler(const std::string& wish);

 private:
  void work();

  const std::filesystem::path compiler_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::vector<Done> done_;
  uint64_t running_link_ = 0;
  std::atomic<bool> has_done_{false};
  std::atomic<bool> cancelled_{false};  // the job that runs now
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace tc::node
