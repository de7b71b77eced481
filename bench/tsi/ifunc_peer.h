// SPDX-License-Identifier: Apache-2.0
//
// Our side of the comparison: target-side increment as an ifunc, through the public API. What is timed calls the C API
// itself, so that nothing stands between the loop and the library. Thread: the one that measures.
#pragma once

#include <threechains/benchmark.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "common/node.h"
#include "ifunc/attempt.h"
#include "wire/bundle.h"

namespace tc::bench {

// The TSI ifunc (examples/01-increment/tsi.c), built with this program and carried inside it.
// Both ISAs, bitcode and objects.
Result<Bundle> tsi_bundle();

// The same code in one form only. `label` goes into the manifest, so that each label has a content id of its own: a
// target that holds the one has never seen the other.
Result<Bundle> tsi_variant(SliceForm form, const std::string& label);

// The object slices of ten_symbols.c, labelled in the same way.
Result<Bundle> ten_symbols_variant(const std::string& label);

class IfuncPeer {
 public:
  static Result<std::unique_ptr<IfuncPeer>> create(const BenchTransport& transport, const NodeSettings& further = {});
  ~IfuncPeer();

  std::string address() const { return node_.address(); }
  Status connect(const std::string& address);

  // Registers code and makes a message with one byte of payload: what send() and call() send from now on.
  Status use(const Bundle& bundle);
  void send() { keep(tc_endpoint_send(endpoint_->handle(), message_->handle())); }
  static constexpr size_t burst = 64;
  void send_burst() { keep(tc_endpoint_send_many(endpoint_->handle(), burst_.data(), burst, nullptr)); }
  void send_with_code() { keep(tc_endpoint_send_with_code(endpoint_->handle(), message_->handle())); }
  void poll() { keep(tc_node_poll(node_.handle(), nullptr)); }
  Status flush(uint32_t timeout_ms);
  Status call(uint32_t timeout_ms);  // and waits for the answer
  uint64_t count() const noexcept { return *const_cast<const volatile uint64_t*>(&counter_); }
  Result<uint64_t> stat(const char* name);

  // The first error of send() or poll(), which do not report it themselves.
  Status status() const;

 private:
  IfuncPeer(threechains::Node node, bool encrypted) : node_(std::move(node)), encrypted_(encrypted) {}
  void keep(tc_status_t status) noexcept {
    if (status != TC_OK) [[unlikely]]
      first_error(status);
  }
  void first_error(tc_status_t status) noexcept;

  threechains::Node node_;
  const bool encrypted_;
  std::optional<threechains::Endpoint> endpoint_;
  std::optional<threechains::Ifunc> ifunc_;
  std::optional<threechains::Message> message_;
  std::array<tc_message_t*, burst> burst_{};
  Error error_{TC_OK, {}};
  alignas(64) uint64_t counter_ = 0;
};

}  // namespace tc::bench
