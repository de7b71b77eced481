// SPDX-License-Identifier: Apache-2.0
//
// For tests: UCX in the hands of a hostile peer.
#pragma once

#include <algorithm>
#include <list>
#include <optional>
#include <vector>

#include "transport/testing/raw_peer.h"
#include "transport/ucx/channel.h"
#include "transport/ucx/details.h"
#include "transport/ucx/worker.h"

namespace tc::transport {

class RawUcx {
 public:
  explicit RawUcx(const Kind& kind)
      : uses_puts_(kind.choice == Choice::ucx_put),
        worker_(UcxWorker::open(kind.ucx_tls, "lo", uses_puts_).value()),
        tls_is_tcp_(worker_->tcp_alone()) {
    if (uses_puts_) memory_ = OwnMemory::allocate(worker_->context(), window + 64).value();
    for (const unsigned id : {0u, am_bytes, 2u}) ignore(id);
    keep_signals();
  }
  ~RawUcx() {
    endpoint_.reset();
    memory_.reset();
  }

  UcxDetails details() const {
    UcxDetails ours{.version = UcxWorker::version(),
                    .tcp_alone = tls_is_tcp_,
                    .token = 7,
                    .window_bytes = window,
                    .worker_address = worker_->address()};
    if (uses_puts_) {
      ours.address = reinterpret_cast<uintptr_t>(memory_->address());
      ours.key = memory_->packed_key().value();
    }
    return ours;
  }
  // After the node's answer: who to speak to.
  void connect(const UcxDetails& node) {
    theirs = node;
    endpoint_ = UcxEndpoint::open(worker_->get(), node.worker_address, failures_).value();
    if (uses_puts_) key_ = RemoteKey::unpack(endpoint_->get(), node.key).value();
  }
  void end_silently() {
    key_.reset();
    endpoint_.reset();
  }
  // An Active Message with these bytes and nothing else.
  void send(unsigned id, ByteView message, ByteView header = {}, unsigned flags = UCP_AM_SEND_FLAG_EAGER) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = flags;
    const Bytes& kept = keep(message);
    const Bytes& head = keep(header);
    finish(ucp_am_send_nbx(endpoint_->get(), id, head.data(), head.size(), kept.data(), kept.size(), &how));
  }
  // One with the prefix that belongs in front of it.
  void send_prefixed(unsigned id, uint16_t number, ByteView payload, uint64_t change_of_mark = 0) {
    Bytes message;
    Writer(message).u64((theirs.token ^ change_of_mark) | static_cast<uint64_t>(number) << 48).bytes(payload);
    send(id, message);
  }
  // Into the node's memory for puts.
  void put(ByteView bytes, uint64_t offset) {
    const ucp_request_param_t none{};
    const Bytes& kept = keep(bytes);
    finish(ucp_put_nbx(endpoint_->get(), kept.data(), kept.size(), theirs.address + offset, key_->get(), &none));
  }
  void progress() { (void)ucp_worker_progress(worker_->get()); }

  // How many signals of this kind the node has sent.
  size_t signals_of(uint8_t what) const {
    return static_cast<size_t>(
        std::ranges::count_if(signals_, [&](const Bytes& one) { return std::to_integer<uint8_t>(one[0]) == what; }));
  }

  static constexpr uint32_t window = 65536;
  UcxDetails theirs;

 private:
  void ignore(unsigned id) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    handler.id = id;
    handler.cb = [](void*, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*) { return UCS_OK; };
    EXPECT_EQ(ucp_worker_set_am_recv_handler(worker_->get(), &handler), UCS_OK);
  }
  void keep_signals() {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = am_signal;
    handler.arg = &signals_;
    handler.cb = [](void* all, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t*) {
      constexpr size_t prefix = 8;
      const auto* const bytes = static_cast<const std::byte*>(data);
      if (size > prefix) static_cast<std::vector<Bytes>*>(all)->emplace_back(bytes + prefix, bytes + size);
      return UCS_OK;
    };
    EXPECT_EQ(ucp_worker_set_am_recv_handler(worker_->get(), &handler), UCS_OK);
  }
  // Nothing is waited for: the node of the test must be driven meanwhile.
  void finish(ucs_status_ptr_t request) {
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    for (int i = 0; i < 10; ++i) progress();
  }
  const Bytes& keep(ByteView bytes) { return kept_.emplace_back(bytes.begin(), bytes.end()); }

  bool uses_puts_;
  std::list<Bytes> kept_;  // UCX may still read it
  std::vector<Bytes> signals_;
  std::unique_ptr<UcxWorker> worker_;
  bool tls_is_tcp_;
  std::unique_ptr<OwnMemory> memory_;
  unsigned failures_ = 0;
  std::shared_ptr<UcxEndpoint> endpoint_;
  std::unique_ptr<RemoteKey> key_;
};

// What a peer of this kind needs to greet well.
class Means {
 public:
  explicit Means(const Kind& kind) : kind_(kind) {
    if (kind.choice == Choice::shm) memory = RingMemory::create(ring_bytes).value();
    if (kind.is_ucx()) ucx.emplace(kind);
  }
  Bytes greeting() const {
    Bytes details;
    if (kind_.choice == Choice::shm) Writer(details).u32(ring_bytes);
    if (ucx) details = encode_details(ucx->details());
    return encode_greeting({std::string(choice_name(kind_.choice)), details, Bytes(10, std::byte{5})});
  }
  size_t say_to(RawPeer& raw, ByteView bytes) const {
    return kind_.choice == Choice::shm ? raw.send(bytes, {memory.descriptor().get()}) : raw.send(bytes);
  }

  static constexpr uint32_t ring_bytes = 4096;
  RingMemory memory;
  std::optional<RawUcx> ucx;

 private:
  const Kind kind_;
};

}  // namespace tc::transport
