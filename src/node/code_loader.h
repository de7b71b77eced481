// SPDX-License-Identifier: Apache-2.0
//
// The way into the code store for calls that arrive with code. Loading ends in one of three ways: the code can run, it
// is being compiled on another node and the caller loads it again later, or it failed.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "trust/permission.h"
#include "wire/bundle.h"

namespace spdlog {
class logger;
}

namespace tc::target {
class Code;
class CodeStore;
class Executor;
}  // namespace tc::target

namespace tc::node {

class CodeShares;
class CompileRequests;
class KnownCode;
class Watchdog;
struct Counters;

// Where code comes from.
struct CodeSource {
  std::string host;                     // empty: this node itself
  std::optional<trust::PublicKey> key;  // of the peer that brings it
  trust::SharedRights rights;           // what the code may do here
};

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

  CodeLoader(const std::unique_ptr<target::CodeStore>& store, CompileRequests& requests, KnownCode& known,
             CodeShares& shares, Watchdog& watchdog, target::Executor& executor, Counters& counters,
             spdlog::logger& log)
      : store_(store),
        requests_(requests),
        known_(known),
        shares_(shares),
        watchdog_(watchdog),
        executor_(executor),
        counters_(counters),
        log_(log) {}

  // What was loaded before and is still here; else null.
  target::Code* find(const ContentId& id) const;

  // Takes the bundle, which may run here, into the code store.
  // When the result is `pending`, `waiter` is told the end of the compilation (Link::on_compiled(),
  // LocalCalls::on_compiled()) and loads again.
  LoadResult load(Bundle bundle, const CodeSource& from, uint64_t waiter);
  // The same without asking another node. `object`: what a helper compiled of the bundle, if that was needed.
  Result<target::Code*> load_here(Bundle bundle, const CodeSource& from, Bytes object = {});

 private:
  const std::unique_ptr<target::CodeStore>& store_;  // made while the node starts
  CompileRequests& requests_;
  KnownCode& known_;
  CodeShares& shares_;
  Watchdog& watchdog_;
  target::Executor& executor_;
  Counters& counters_;
  spdlog::logger& log_;
};

}  // namespace tc::node
