// SPDX-License-Identifier: Apache-2.0
//
// Code that another node, the helper, compiles for this one. A node without LLVM runs object slices. When a bundle has
// only bitcode, the node asks the helper that its operator named (`compile-at`) and tells it the CPU. The helper sends
// an object, which this node checks, links under its own policy and keeps like any other. Calls wait meanwhile, and
// fail with the reason if no object comes. With `cache-dir`, objects are kept on disk and need no second request.
//
// Thread: the node's. Waiters are told in the next poll(), because requests end in the middle of other work.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "node/code_loader.h"
#include "target/code_store.h"
#include "target/cpu.h"
#include "target/disk_cache.h"
#include "wire/compile.h"

namespace tc::node {

class Link;
class Links;
class LocalCalls;
class SliceRequests;
struct Config;
struct Counters;
struct PendingWork;

class CompileRequests {
 public:
  struct Services {
    Links& links;
    LocalCalls& local_calls;
    SliceRequests& slices;
    CodeLoader& loader;
    const std::unique_ptr<target::CodeStore>& store;
    const Config& config;
    PendingWork& work;
    Counters& counters;
    spdlog::logger& log;
  };
  explicit CompileRequests(const Services& services) : node_(services) {}

  // True when this node cannot run the bundle as it is, and may ask a helper to compile it.
  bool needs_helper(const Bundle& bundle) const;
  // Loads code that needs_helper(), from the cache on disk or by a request. CodeLoader::load() describes `waiter`.
  LoadResult compile(Bundle bundle, const CodeSource& from, uint64_t waiter);

  // `link` is ready now: sends the requests that wait for it.
  void on_link_ready(Link& link);
  void on_link_lost(const Link& link);
  void on_answer(const Link& from, const wire::CompileAnswer& answer);
  // Gives up on what took too long. Cheap when nothing is open.
  void tick();
  // Tells the waiters of requests that have ended. True when there were any.
  bool deliver();

 private:
  struct Request {
    uint64_t token = 0;
    uint64_t helper = 0;  // id of the link it goes to
    bool sent = false;
    uint64_t until_ns = 0;
    Bundle bundle;
    CodeSource from;
    std::vector<uint64_t> waiters;
  };
  struct Failure {
    Error error;
    uint64_t until_ns;
  };

  Status ask(Bundle bundle, const CodeSource& from, uint64_t waiter);
  Result<Link*> helper();
  void send(Link& link, Request& request);
  Result<target::Code*> load_cached(const Bundle& bundle, const CodeSource& from);
  std::string cache_key(const Bundle& bundle);
  target::DiskCache* cache();
  const target::Cpu& cpu();
  std::string asked(std::string_view helper);
  const Error& remember(const ContentId& id, const std::string& name, const Error& error);
  std::deque<Request>::iterator end(std::deque<Request>::iterator request, const Error* error);

  const Services node_;
  std::deque<Request> open_;
  std::unordered_map<ContentId, Failure> failures_;  // for the waiters, and for calls that come soon after
  std::vector<uint64_t> ended_;                      // waiters of requests that have ended
  target::Cpu cpu_;                                  // read when it is first needed
  std::unique_ptr<target::DiskCache> cache_;
  bool cache_tried_ = false;
  uint64_t helper_ = 0;  // id of the link to it
  uint64_t tokens_ = 0;
};

}  // namespace tc::node
