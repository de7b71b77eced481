// SPDX-License-Identifier: Apache-2.0
//
// Our side of `ifunc bench bulk`: large calls and large replies, through the public API.
//
// Thread: one in each process.
#pragma once

#include <threechains/threechains.h>

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "bulk/carry.h"
#include "common/transport.h"

namespace tc::bench {

class BulkNode {
 public:
  // `data` is what large replies are made of; empty at the source. It must outlive the node.
  static Result<std::unique_ptr<BulkNode>> create(const BenchTransport& transport, ByteView data);
  ~BulkNode();

  std::string address() const { return tc_node_address(node_); }
  Status connect(const std::string& address);
  // From now on calls carry the first `size` bytes of `data`, and replies are so long.
  Status use(ByteView data, size_t size);
  ByteView payload() const noexcept { return payload_; }

  // One call with the large payload, and its short answer.
  Status call();
  // One short call, and its large answer.
  Status fetch();
  // The same, and every byte of the answer is compared with `expected`.
  Status fetch_and_compare(ByteView expected);
  void poll() noexcept;

 private:
  BulkNode() = default;
  Status ask(tc_message_t* message);
  Result<ByteView> answer() const;
  void forget_answer() noexcept;

  tc_node_t* node_ = nullptr;
  tc_endpoint_t* endpoint_ = nullptr;
  tc_ifunc_t* ifunc_ = nullptr;
  tc_message_t* large_ = nullptr;
  tc_message_t* request_ = nullptr;
  tc_future_t* future_ = nullptr;
  ByteView payload_;
  carry_target target_{};
};

}  // namespace tc::bench
