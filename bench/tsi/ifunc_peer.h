// SPDX-License-Identifier: Apache-2.0
//
// Our side of the comparison: target-side increment as an ifunc, through the public API.
#pragma once

#include <threechains/benchmark.h>
#include <threechains/threechains.h>

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "common/transport.h"
#include "wire/bundle.h"

namespace tc::bench {

class IfuncPeer {
 public:
  static Result<std::unique_ptr<IfuncPeer>> create(const BenchTransport& transport);
  ~IfuncPeer();

  std::string address() const { return tc_node_address(node_); }
  Status connect(const std::string& address);

  // Registers code and makes a message with one byte of payload: what send() and call() send from now on.
  Status use(const Bundle& bundle);
  void send() { keep(tc_endpoint_send(endpoint_, message_)); }
  static constexpr size_t burst = 64;
  void send_burst() { keep(tc_endpoint_send_many(endpoint_, burst_.data(), burst, nullptr)); }
  void send_with_code() { keep(tc_endpoint_send_with_code(endpoint_, message_)); }
  void poll() { keep(tc_node_poll(node_, nullptr)); }
  Status flush(uint32_t timeout_ms);
  Status call(uint32_t timeout_ms);  // and waits for the answer
  uint64_t count() const noexcept { return *const_cast<const volatile uint64_t*>(&counter_); }
  Result<uint64_t> stat(const char* name);
  // Waits until all code here is compiled for this CPU.
  void settle(uint64_t codes);

  // The first error of send() or poll(), which do not stop to look.
  Status status() const;

 private:
  IfuncPeer() = default;
  void keep(tc_status_t status) noexcept {
    if (status != TC_OK) [[unlikely]]
      first_error(status);
  }
  void first_error(tc_status_t status) noexcept;

  tc_node_t* node_ = nullptr;
  tc_endpoint_t* endpoint_ = nullptr;
  tc_ifunc_t* ifunc_ = nullptr;
  tc_message_t* message_ = nullptr;
  std::array<tc_message_t*, burst> burst_{};
  Error error_{TC_OK, {}};
  alignas(64) uint64_t counter_ = 0;
};

}  // namespace tc::bench
