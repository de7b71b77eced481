// SPDX-License-Identifier: Apache-2.0
//
// The way into the code store for calls that arrive with code. Loading ends in one of three ways: the code can run, it
// is being compiled on another node and the caller loads it again later, or it failed.
//
// A node without LLVM runs object slices. When a bundle has only bitcode, the node asks the helper that its operator named
// (`compile-at`) and tells it the CPU. The helper sends an object, which this node checks, links under its own policy and
// keeps like any other. Calls wait meanwhile, and fail with the reason if no object comes. With `cache-dir`, objects are
// kept on disk and need no second request.
//
// Thread: the node's. Waiters are told in the next poll(), because requests end in the middle of other work.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "node/code/codes.h"
#include "target/cpu.h"
#include "target/disk_cache.h"
#include "wire/compile.h"

namespace tc::node {

class Link;
class Links;
class LocalCalls;
class SliceRequests;

struct LoadResult {
  enum class State : uint8_t { loaded, pending, error };

  static LoadResult loaded(target::Code& code) { return {State::loaded, &code, {}, false}; }
  static LoadResult pending() { return {State::pending, nullptr, {}, false}; }
  static LoadResult failed(Error error) { return {State::error, nullptr, std::move(error), false}; }
  // The helper could not compile it now; a later attempt may succeed.
  static LoadResult failed_for_now(Error error) { return {State::error, nullptr, std::move(error), true}; }

  bool is_loaded() const noexcept { return state == State::loaded; }
  bool is_pending() const noexcept { return state == State::pending; }
  bool is_error() const noexcept { return state == State::error; }

  State state;
  target::Code* code;  // loaded: never null
  Error error;         // error
  bool transient;      // error: a later attempt may succeed, so the reason must not be kept for good
};

class CodeLoader {
 public:
  // The waiter for calls of this node to itself; every other waiter is the id of a link.
  static constexpr uint64_t this_node = 0;

  CodeLoader(const Common& common, Codes& codes, SliceRequests& slices, Links& links, LocalCalls& local_calls)
      : common_(common), codes_(codes), slices_(slices), links_(links), local_calls_(local_calls) {}

  // Takes the bundle, which may run here, into the code store.
  // When the result is `pending`, `waiter` is told the end of the compilation (Link::on_compiled(),
  // LocalCalls::on_compiled()) and loads again.
  LoadResult load(Bundle bundle, const CodeOrigin& from, uint64_t waiter);

  // ---- Requests to the helper

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
    CodeOrigin from;
    std::vector<uint64_t> waiters;
  };
  struct Failure {
    Error error;
    uint64_t until_ns;
  };

  LoadResult compile(Bundle bundle, const CodeOrigin& from, uint64_t waiter);
  Status ask(Bundle bundle, const CodeOrigin& from, uint64_t waiter);
  Result<Link*> helper();
  void send(Link& link, Request& request);
  Result<target::Code*> load_cached(const Bundle& bundle, const CodeOrigin& from);
  std::string cache_key(const Bundle& bundle);
  target::DiskCache* cache();
  const target::Cpu& cpu();
  std::string asked(std::string_view helper);
  const Error& remember(const ContentId& id, const std::string& name, const Error& error);
  std::deque<Request>::iterator end(std::deque<Request>::iterator request, const Error* error);

  const Common& common_;
  Codes& codes_;
  SliceRequests& slices_;
  Links& links_;
  LocalCalls& local_calls_;
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
