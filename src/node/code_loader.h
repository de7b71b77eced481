// SPDX-License-Identifier: Apache-2.0
//
// The way into the code store for calls that arrive with code. Loading ends in one of three ways: the code can run, it
// is being compiled on another node and the caller loads it again later, or it failed.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "wire/bundle.h"

namespace tc::target {
class Code;
}

namespace tc::node {

class CompileRequests;
class Node;

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

  CodeLoader(Node& node, CompileRequests& requests) : node_(node), requests_(requests) {}

  // Takes the bundle into the code store. `from`: the host that it came from, empty for this node's own code.
  // When the result is `pending`, Link::on_compiled() or Node::on_compiled() tells `waiter` the end of the compilation,
  // and the waiter loads again.
  LoadResult load(Bundle bundle, std::string_view from, uint64_t waiter);

 private:
  Node& node_;
  CompileRequests& requests_;
};

}  // namespace tc::node
