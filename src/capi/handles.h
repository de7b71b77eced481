// SPDX-License-Identifier: Apache-2.0
//
// The structs behind the opaque handles of threechains.h, and the conversion of errors and exceptions at the C API.
//
// Threads: as the C API says for each handle.
#pragma once

#include <threechains/threechains.h>

#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "capi/progress.h"
#include "node/node.h"

struct tc_config {
  tc::node::Config config = tc::node::Config::defaults();
};

struct tc_ifunc {
  tc_node* owner;
  std::shared_ptr<tc::source::Ifunc> ifunc;
  std::string content_id;
  uint32_t registrations = 0;
};

struct tc_endpoint {
  tc_node* owner;
  tc::node::Link* link;  // of Links, which keeps it, even when it is lost, until all of its endpoints are closed
  tc::capi::Gate* gate;  // the owner's, so that sending follows one pointer less
  uint32_t timeout_ms = 1000;
  std::string peer;
};

struct tc_future {
  tc_node* owner;  // not used once the future is ready: the node may be gone
  std::shared_ptr<tc::node::Future> future;
  tc_future_function_t on_ready = nullptr;  // set at most once
  void* context = nullptr;
};

// Aligned, so that the members that each tc_node_wait() reads share the first cache line.
struct alignas(64) tc_node {
  explicit tc_node(std::unique_ptr<tc::node::Node> made) : node(std::move(made)), progress(gate, *node) {}

  std::unique_ptr<tc::node::Node> node;
  bool is_destroyed = false;  // tc_node_free() was called while the node polled; the polling call frees it at its end
  tc::capi::Gate gate;
  tc::capi::Progress progress;
  std::unordered_map<const tc::source::Ifunc*, std::unique_ptr<tc_ifunc>> ifuncs;
  std::unordered_map<tc_endpoint*, std::unique_ptr<tc_endpoint>> endpoints;
};

namespace tc::capi {

using Pass = Gate::Pass;

// A tc_message_t is a source::Message itself, so that sending follows one pointer less.
inline source::Message& message_of(tc_message_t* handle) noexcept {
  return *reinterpret_cast<source::Message*>(handle);
}

// Ends the waiting calls and frees the node. The node must not be polling.
void end_and_free(tc_node& node) noexcept;

// Lives while a function of the node runs. The application may destroy the node meanwhile, in a callback. Then the
// destructor frees it.
class Entry {
 public:
  explicit Entry(tc_node& node) : last_{node}, pass_(node.gate, *node.node) {}
  ~Entry() {
    if (last_.node.is_destroyed) [[unlikely]]
      last_.is_due = !last_.node.node->is_polling() && !last_.node.node->is_in_handed_call();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  struct Last {
    tc_node& node;
    bool is_due = false;
    ~Last() {
      if (is_due) [[unlikely]]
        end_and_free(node);
    }
  };
  Last last_;  // destroyed after the pass
  Pass pass_;
};

inline Entry enter(tc_node& node) { return Entry(node); }

// Stores the sentence for tc_error_message(), and returns the status.
tc_status_t report(const Error& error) noexcept;
tc_status_t report(tc_status_t status, const char* sentence) noexcept;

// Converts the current exception. Call it in a catch clause.
tc_status_t report_exception() noexcept;

// Runs the body of a C function: no exception leaves it.
template <class Body>
tc_status_t guarded(Body&& body) noexcept {
  try {
    const Status status = body();
    return status ? TC_OK : report(status.error());
  } catch (...) {
    return report_exception();
  }
}

// The same for a body that can fail only by an exception.
template <class Body>
tc_status_t guarded_plain(Body&& body) noexcept {
  try {
    body();
    return TC_OK;
  } catch (...) {
    return report_exception();
  }
}

}  // namespace tc::capi

// Refuses null arguments by name.
#define TC_NOT_NULL(argument)                                                                            \
  do {                                                                                                   \
    if ((argument) == nullptr) return ::tc::capi::report(TC_ERR_INVALID, #argument " must not be NULL"); \
  } while (false)
