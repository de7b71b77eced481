// SPDX-License-Identifier: Apache-2.0
//
// Code that another node compiles for this one. A node without LLVM runs object slices; where a bundle has bitcode
// alone, it asks the node that its operator named (`compile-at`), tells its CPU, and gets an object, which it checks,
// links under its own policy and keeps like any other. The calls wait meanwhile, and fail with the reason when there is
// none. With `cache-dir`, objects outlive the process, and no question is asked for them again.
//
// Thread: the node's. Who waits is told with the next poll(), as questions end in the middle of everything.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "target/code_store.h"
#include "target/cpu.h"
#include "target/disk_cache.h"
#include "wire/compile.h"

namespace tc::node {

class Link;
class Node;

class CompileRequests {
 public:
  // Waits: the mark of a link, or this for calls of the node to itself.
  static constexpr uint64_t ourselves = 0;

  explicit CompileRequests(Node& node) : node_(node) {}

  // As Node::load(), but null when the code is being compiled elsewhere: `waiter` hears of it by
  // Link::on_compiled() or Node::on_compiled(), and calls again.
  Result<target::Code*> load(Bundle bundle, std::string_view from, uint64_t waiter);

  // `link` has greeted: what waits for that is sent.
  void on_link_ready(Link& link);
  void on_link_lost(const Link& link);
  void on_answer(const Link& from, const wire::CompileAnswer& answer);
  // Gives up on what took too long. Cheap when nothing is open.
  void tick();
  // Tells those who wait. True when there was somebody.
  bool deliver();

  // Asking for that code came to nothing a moment ago. It may have passed by the next time: a helper comes back.
  bool failed_lately(const ContentId& id) const { return failures_.contains(id); }

 private:
  struct Request {
    uint64_t token = 0;
    uint64_t helper = 0;  // mark of the link it goes to
    bool sent = false;
    uint64_t until_ns = 0;
    Bundle bundle;
    std::string from;
    std::vector<uint64_t> waiters;
  };
  struct Failure {
    Error error;
    uint64_t until_ns;
  };

  Status ask(Bundle bundle, std::string_view from, uint64_t waiter);
  Result<Link*> helper();
  void send(Link& link, Request& request);
  Result<target::Code*> load_cached(const Bundle& bundle, std::string_view from);
  std::string cache_key(const Bundle& bundle);
  target::DiskCache* cache();
  const target::Cpu& cpu();
  std::string asked(std::string_view whom);
  const Error& remember(const ContentId& id, const std::string& name, const Error& error);
  std::deque<Request>::iterator end(std::deque<Request>::iterator request, const Error* error);

  Node& node_;
  std::deque<Request> open_;
  std::unordered_map<ContentId, Failure> failures_;  // told to who waited, and to who asks again at once
  std::vector<uint64_t> ended_;                      // who waits for what has ended
  target::Cpu cpu_;                                  // looked at when it is first needed
  std::unique_ptr<target::DiskCache> cache_;
  bool cache_tried_ = false;
  uint64_t helper_ = 0;  // mark of the link to it
  uint64_t tokens_ = 0;
};

}  // namespace tc::node
