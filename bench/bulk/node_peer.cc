// SPDX-License-Identifier: Apache-2.0
#include "bulk/node_peer.h"

#include <cstring>
#include <utility>

#include "common/embedded.h"
#include "common/node.h"

TC_EMBED(carry_ifunc, TC_CARRY_IFUNC)

namespace tc::bench {

namespace {

constexpr uint32_t deadline_ms = 60'000;
constexpr auto max_message = "536870912";  // a frame of the largest size, with what stands before its payload

uint64_t word_at(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

Result<std::unique_ptr<BulkNode>> BulkNode::create(const BenchTransport& transport, ByteView data) {
  std::unique_ptr<BulkNode> peer(new BulkNode);
  TC_ASSIGN(peer->node_, make_node(transport, {{"warm-up", "on"}, {"log", "error"}, {"max-message", max_message}}));
  peer->target_ = {data.data(), data.size()};
  tc_node_set_target_args(peer->node_, &peer->target_);
  return peer;
}

BulkNode::~BulkNode() {
  forget_answer();
  tc_message_free(large_);
  tc_message_free(request_);
  tc_node_destroy(node_);
}

Status BulkNode::connect(const std::string& address) {
  const auto code = carry_ifunc();
  TC_CHECK(check(tc_ifunc_register_memory(node_, code.data(), code.size(), &ifunc_), "tc_ifunc_register_memory"));
  TC_CHECK(check(tc_node_connect(node_, address.c_str(), 10'000, &endpoint_), "tc_node_connect"));
  tc_endpoint_set_timeout(endpoint_, deadline_ms);
  return {};
}

Status BulkNode::use(ByteView data, size_t size) {
  tc_message_free(std::exchange(large_, nullptr));
  tc_message_free(std::exchange(request_, nullptr));
  TC_CHECK(check(tc_message_create(ifunc_, data.data(), size, &large_), "tc_message_create"));
  uint64_t wanted = size;
  TC_CHECK(check(tc_message_create(ifunc_, &wanted, sizeof wanted, &request_), "tc_message_create"));
  payload_ = {static_cast<const std::byte*>(tc_message_payload(large_, nullptr)), size};
  return {};
}

Status BulkNode::ask(tc_message_t* message) {
  forget_answer();
  TC_CHECK(check(tc_endpoint_call(endpoint_, message, deadline_ms, &future_), "tc_endpoint_call"));
  TC_CHECK(check(tc_future_wait(future_, deadline_ms), "tc_future_wait"));
  return check(tc_future_status(future_), "the call");
}

Result<ByteView> BulkNode::answer() const {
  size_t size = 0;
  const auto* const bytes = static_cast<const std::byte*>(tc_future_bytes(future_, &size));
  if (bytes == nullptr) return fail(TC_ERR_INTERNAL, "there are no bytes in the answer");
  return ByteView(bytes, size);
}

void BulkNode::forget_answer() noexcept { tc_future_free(std::exchange(future_, nullptr)); }

Status BulkNode::call() {
  TC_CHECK(ask(large_));
  TC_ASSIGN(const auto ends, answer());
  if (ends.size() != 2 * sizeof(uint64_t) || word_at(ends.data()) != word_at(payload_.data()) ||
      word_at(ends.data() + sizeof(uint64_t)) != word_at(payload_.data() + payload_.size() - sizeof(uint64_t)))
    return fail(TC_ERR_INTERNAL, "the target saw another payload than was sent");
  return {};
}

Status BulkNode::fetch() {
  TC_CHECK(ask(request_));
  TC_ASSIGN(const auto bytes, answer());
  if (bytes.size() != payload_.size())
    return fail(TC_ERR_INTERNAL, "the answer is {} bytes when {} were due", bytes.size(), payload_.size());
  return {};
}

Status BulkNode::fetch_and_compare(ByteView expected) {
  TC_CHECK(fetch());
  TC_ASSIGN(const auto bytes, answer());
  if (std::memcmp(bytes.data(), expected.data(), bytes.size()) != 0)
    return fail(TC_ERR_INTERNAL, "the answer's bytes are not those that the target has");
  return {};
}

void BulkNode::poll() noexcept { (void)tc_node_poll(node_, nullptr); }

}  // namespace tc::bench
