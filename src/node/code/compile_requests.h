// SPDX-License-Identifier: Apache-2.0
//
// Requests to the helper, the node that the operator of a node without LLVM named (`compile-at`): it is told the CPU, compiles
// the bitcode of a bundle, and sends an object. A request ends with that object, or with the reason why there is none: the
// helper says so, its link is lost, or it takes too long.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "node/common.h"
#include "target/cpu.h"
#include "wire/bundle.h"
#include "wire/compile.h"

namespace tc::node {

class Link;
class Links;

class CompileRequests {
 public:
  // A request has ended. `helper` names the helper that sent the object; where there is none, the error names it. When this
  // throws std::bad_alloc, the request stays open.
  using OnEnd = std::function<void(const Bundle& bundle, std::string_view helper, const Result<ByteView>& object)>;

  CompileRequests(const Common& common, Links& links, OnEnd on_end)
      : common_(common), links_(links), on_end_(std::move(on_end)) {}

  // Asks for an object of the bundle. One request at a time for each bundle is enough. An error: it cannot be asked now.
  Status ask(Bundle bundle);
  // `link` is ready now: sends the requests that wait for it.
  void on_link_ready(Link& link);
  void on_link_lost(const Link& link);
  void on_answer(const Link& from, const wire::CompileAnswer& answer);
  // Gives up on what took too long. Cheap when nothing is open.
  void tick();
  // What the helper compiles for.
  const target::Cpu& cpu();

 private:
  struct Request {
    uint64_t token = 0;
    uint64_t helper = 0;  // id of the link it goes to
    bool sent = false;
    uint64_t until_ns = 0;
    Bundle bundle;
  };
  using Position = std::deque<Request>::iterator;

  Result<Link*> helper();
  void send(Link& link, Request& request);
  std::string asked(std::string_view helper);
  Position end(Position request, std::string_view helper, const Result<ByteView>& object);

  const Common& common_;
  Links& links_;
  OnEnd on_end_;
  std::deque<Request> open_;
  target::Cpu cpu_;      // read when it is first needed
  uint64_t helper_ = 0;  // id of the link to it
  uint64_t tokens_ = 0;
};

}  // namespace tc::node
