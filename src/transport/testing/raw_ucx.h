// SPDX-License-Identifier: Apache-2.0
//
// For tests: UCX in the hands of a hostile peer.
#pragma once

#include <optional>

#include "transport/testing/raw_peer.h"
#include "transport/ucx/details.h"
#include "transport/ucx/endpoint.h"
#include "transport/ucx/memory.h"
#include "transport/ucx/worker.h"

namespace tc::transport {

class RawUcx {
 public:
  explicit RawUcx(const Kind& kind)
      : uses_puts_(kind.choice == Choice::ucx_put),
        worker_(UcxWorker::open(kind.ucx_tls, "lo", uses_puts_).value()),
        tls_is_tcp_(worker_->tcp_alone()) {
    if (uses_puts_) memory_ = OwnMemory::allocate(worker_->context(), window + 64).value();
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
  void meet(const UcxDetails& node) {
    theirs = node;
    endpoint_ = UcxEndpoint::open(worker_->get(), node.worker_address, failures_).value();
    if (uses_puts_) key_ = RemoteKey::unpack(endpoint_->get(), node.key).value();
  }
  void leave() {
    key_.reset();
    endpoint_.reset();
  }
  // An Active Message with these bytes and nothing else.
  void send(unsigned id, ByteView message, ByteView header = {}) {
    finish(ucp_am_send_nbx(endpoint_->get(), id, header.data(), header.size(), message.data(), message.size(), &none_));
  }
  // One with the mark that belongs in front of it.
  void send_marked(unsigned id, uint16_t number, ByteView payload, uint64_t change_of_mark = 0) {
    Bytes message;
    Writer(message).u64((theirs.token ^ change_of_mark) | static_cast<uint64_t>(number) << 48).bytes(payload);
    send(id, message);
  }
  // Into the node's memory for puts.
  void put(ByteView bytes, uint64_t offset) {
    finish(ucp_put_nbx(endpoint_->get(), bytes.data(), bytes.size(), theirs.address + offset, key_->get(), &none_));
  }
  void progress() { (void)ucp_worker_progress(worker_->get()); }

  static constexpr uint32_t window = 65536;
  UcxDetails theirs;

 private:
  // The node of the test must be driven meanwhile, so nothing is waited for: what is sent here is short.
  void finish(ucs_status_ptr_t request) {
    for (int i = 0; i < 100; ++i) progress();
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }

  bool uses_puts_;
  std::unique_ptr<UcxWorker> worker_;
  bool tls_is_tcp_;
  std::unique_ptr<OwnMemory> memory_;
  unsigned failures_ = 0;
  std::shared_ptr<UcxEndpoint> endpoint_;
  std::unique_ptr<RemoteKey> key_;
  ucp_request_param_t none_{};
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
    return kind_.choice == Choice::shm ? raw.say(bytes, {memory.descriptor().get()}) : raw.say(bytes);
  }

  static constexpr uint32_t ring_bytes = 4096;
  RingMemory memory;
  std::optional<RawUcx> ucx;

 private:
  const Kind kind_;
};

}  // namespace tc::transport
