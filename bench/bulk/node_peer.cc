// SPDX-License-Identifier: Apache-2.0
#include "bulk/node_peer.h"

#include <cstring>

#include "common/embedded.h"
#include "common/node.h"

TC_EMBED(carry_ifunc, TC_CARRY_IFUNC)

namespace tc::bench {

namespace {

constexpr threechains::milliseconds limit{60'000};
constexpr auto max_message = "536870912";  // a frame of the largest size, with what stands before its payload

uint64_t word_at(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

Result<std::unique_ptr<BulkNode>> BulkNode::create(const BenchTransport& transport, ByteView data) {
  TC_ASSIGN(auto node, make_node(transport, {{"warm-up", "on"}, {"log", "error"}, {"max-message", max_message}}));
  std::unique_ptr<BulkNode> peer(new BulkNode(std::move(node), transport.encrypted()));
  peer->target_ = {data.data(), data.size()};
  peer->node_.set_target_args(&peer->target_);
  return peer;
}

BulkNode::~BulkNode() {
  if (endpoint_) endpoint_->abandon();
}

Status BulkNode::connect(const std::string& address) {
  TC_CHECK(attempt([&] { ifunc_ = node_.load(carry_ifunc()); }));
  TC_ASSIGN(auto made, bench::connect(node_, address, encrypted_));
  endpoint_ = std::move(made);
  endpoint_->set_timeout(limit);
  return {};
}

Status BulkNode::use(ByteView data, size_t size) {
  large_.reset();
  request_.reset();
  return attempt([&] {
    large_ = ifunc_->message(const_cast<std::byte*>(data.data()), size);  // is copied
    request_ = ifunc_->message(uint64_t{size});
    payload_ = large_->payload();
  });
}

Result<ByteView> BulkNode::ask(const threechains::Message& message) {
  future_.reset();  // and its answer, before there is another one
  return attempt([&]() -> ByteView {
    future_ = endpoint_->call(message, limit);
    return future_->bytes(limit);
  });
}

Status BulkNode::call() {
  TC_ASSIGN(const auto ends, ask(*large_));
  if (ends.size() != 2 * sizeof(uint64_t) || word_at(ends.data()) != word_at(payload_.data()) ||
      word_at(ends.data() + sizeof(uint64_t)) != word_at(payload_.data() + payload_.size() - sizeof(uint64_t)))
    return fail(TC_ERR_INTERNAL, "the target saw another payload than was sent");
  return {};
}

Result<ByteView> BulkNode::fetch() {
  TC_ASSIGN(const auto bytes, ask(*request_));
  if (bytes.size() != payload_.size())
    return fail(TC_ERR_INTERNAL, "the answer is {} bytes when {} were due", bytes.size(), payload_.size());
  return bytes;
}

Status BulkNode::fetch_and_compare(ByteView expected) {
  TC_ASSIGN(const auto bytes, fetch());
  if (std::memcmp(bytes.data(), expected.data(), bytes.size()) != 0)
    return fail(TC_ERR_INTERNAL, "the answer's bytes are not those that the target has");
  return {};
}

void BulkNode::poll() noexcept { (void)tc_node_poll(node_.handle(), nullptr); }

}  // namespace tc::bench
