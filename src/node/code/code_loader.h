// SPDX-License-Identifier: Apache-2.0
//
// The way into the code store for calls that arrive with code. Loading ends in one of three ways: the code can run, it
// is being compiled on another node and the caller loads it again later, or it failed.
//
// A node without LLVM runs object slices. When a bundle has only bitcode, the node asks its helper for an object
// (CompileRequests), which it checks, links under its own policy and keeps like any other. Calls wait meanwhile, and fail with
// the reason if no object comes. With `cache-dir`, objects are kept on disk and need no second request.
//
// Thread: the node's. Waiters are told in the next poll(), because requests end in the middle of other work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "node/code/codes.h"
#include "node/code/compile_requests.h"
#include "target/disk_cache.h"

namespace tc::node {

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

  CodeLoader(const Common& common, Codes& codes, SliceRequests& slices, Links& links, LocalCalls& local_calls);

  // Takes the bundle, which may run here, into the code store.
  // When the result is `pending`, `waiter` is told the end of the compilation (Link::on_compiled(),
  // LocalCalls::on_compiled()) and loads again.
  LoadResult load(Bundle bundle, const CodeOrigin& from, uint64_t waiter);
  // Tells the waiters of requests that have ended. True when there were any.
  bool deliver();
  // What it asked the helper for.
  CompileRequests& requests() noexcept { return requests_; }

 private:
  // For an object of the helper.
  struct Waiting {
    CodeOrigin from;
    std::vector<uint64_t> waiters;
  };
  struct Failure {
    Error error;
    uint64_t until_ns;
  };

  LoadResult load_compiled(Bundle bundle, const CodeOrigin& from, uint64_t waiter);
  Result<target::Code*> load_cached(const Bundle& bundle, const CodeOrigin& from);
  void on_request_end(const Bundle& bundle, std::string_view helper, const Result<ByteView>& object);
  Status load_object(const Bundle& bundle, std::string_view helper, ByteView object, const Waiting& waiting);
  std::string cache_key(const Bundle& bundle);
  target::DiskCache* cache();
  const Error& remember(const Bundle& bundle, const Error& error);

  const Common& common_;
  Codes& codes_;
  SliceRequests& slices_;
  Links& links_;
  LocalCalls& local_calls_;
  CompileRequests requests_;
  std::unordered_map<ContentId, Waiting> waiting_;   // one for each request
  std::unordered_map<ContentId, Failure> failures_;  // for the waiters, and for calls that come soon after
  std::vector<uint64_t> ended_;                      // waiters of requests that have ended
  std::unique_ptr<target::DiskCache> cache_;
  bool cache_tried_ = false;
};

}  // namespace tc::node
