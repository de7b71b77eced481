// SPDX-License-Identifier: Apache-2.0
//
// Our side of `ifunc bench bulk`: large calls and large replies, through the public API.
//
// Thread: one in each process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "bulk/carry.h"
#include "common/node.h"
#include "ifunc/attempt.h"

namespace tc::bench {

class BulkNode {
 public:
  // `data` is what large replies are made of; empty at the source. It must outlive the node.
  static Result<std::unique_ptr<BulkNode>> create(const BenchTransport& transport, ByteView data);
  ~BulkNode();

  std::string address() const { return node_.address(); }
  Status connect(const std::string& address);
  // From now on calls carry the first `size` bytes of `data`, and replies are so long.
  Status use(ByteView data, size_t size);
  ByteView payload() const noexcept { return payload_; }

  // One call with the large payload, and its short answer.
  Status call();
  // One short call, and its large answer, valid until the next call.
  Result<ByteView> fetch();
  // The same, and every byte of the answer is compared with `expected`.
  Status fetch_and_compare(ByteView expected);
  void poll() noexcept;

 private:
  BulkNode(threechains::Node node, bool encrypted) : node_(std::move(node)), encrypted_(encrypted) {}
  Result<ByteView> ask(const threechains::Message& message);

  carry_target target_{};  // outlives the node
  threechains::Node node_;
  const bool encrypted_;
  std::optional<threechains::Endpoint> endpoint_;
  std::optional<threechains::Ifunc> ifunc_;
  std::optional<threechains::Message> large_, request_;
  std::optional<threechains::Future> future_;
  ByteView payload_;
};

}  // namespace tc::bench
