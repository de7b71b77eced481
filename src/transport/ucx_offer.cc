// SPDX-License-Identifier: Apache-2.0
//
// How the two sides of a connection agree on a way: what we offer, and what we make of the peer's offer.
#include <sys/random.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "transport/ucx_peer.h"
#include "transport/ucx_transport.h"

namespace tc::transport {

namespace {

// Is all of [address, address + size) shared, writable memory here? An offer that lies about its address must not
// make us touch what is not mapped.
bool is_shared_mapping(const void* address, size_t size) {
  const auto first = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, rights) != 3) continue;
    if (first >= begin && first < end)
      return size <= end - first && rights[0] == 'r' && rights[1] == 'w' && rights[3] == 's';
  }
  return false;
}

}  // namespace

Result<Bytes> UcxPeer::offer(Way allowed) {
  if (is_lost() || stage() >= Stage::closing)
    return fail(TC_ERR_DISCONNECTED, "the connection to {} is gone", address_);
  Offer offer;
  offer.ring = transport_.can_use_rings() && (allowed == Way::automatic || allowed == Way::ring);
  offer.put = transport_.options().allow_put && (allowed == Way::automatic || allowed == Way::put);
  offer.ucx_version = UcxWorker::version();
  offer.machine = transport_.machine();
  if (!offer.ring && !offer.put) return encode_offer(offer);
  const size_t bytes = transport_.options().ring_bytes;
  if (ring_memory_ == nullptr) {
    TC_ASSIGN(ring_memory_, OwnMemory::allocate(transport_.worker().context(), ring_memory_bytes(bytes)));
    if (getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_)
      return fail(TC_ERR_INTERNAL, "the system has no random bytes");
    own_ring_ = RingView::at(ring_memory_->address(), bytes);
    RingIn::start(own_ring_, nonce_);
  }
  offer.nonce = nonce_;
  offer.ring_bytes = static_cast<uint32_t>(bytes);
  offer.address = reinterpret_cast<uintptr_t>(ring_memory_->address());
  TC_ASSIGN(offer.key, ring_memory_->packed_key());
  return encode_offer(offer);
}

Status UcxPeer::open_way(Way wish, ByteView peer_offer) {
  if (way_ != Way::automatic) return fail(TC_ERR_INVALID, "the way to {} is open already", address_);
  if (wish == Way::loopback) return fail(TC_ERR_UNSUPPORTED, "UCX has no way 'loopback'");
  TC_ASSIGN(const Offer offer, decode_offer(peer_offer));
  if (is_lost() || stage() != Stage::up) return fail(TC_ERR_DISCONNECTED, "the connection to {} is not up", address_);
  if (wish == Way::ring || (wish == Way::automatic && offer.ring)) {
    auto opened = open_ring(offer);
    if (!opened && wish == Way::ring) return opened;
  }
  if (wish == Way::put) TC_CHECK(open_put(offer));
  if (way_ == Way::automatic) {
    way_ = Way::am;
    out_.open(std::min<size_t>(transport_.options().batch_bytes, peer_.batch_bytes),
              std::min<size_t>(transport_.options().window_bytes, peer_.window_bytes));
  }
  transport_.note(*this);
  return {};
}

// What `ring` and `put` have in common: UCX on both sides must be the same, byte for byte.
Status UcxPeer::reach_memory(const Offer& offer, std::string_view way) {
  if (offer.ucx_version != UcxWorker::version())
    return fail(TC_ERR_UNSUPPORTED, "no way '{}' to {}: it runs UCX {}, we run {}", way, address_, offer.ucx_version,
                UcxWorker::version());
  TC_ASSIGN(remote_key_, RemoteKey::unpack(endpoint_->get(), offer.key));
  return {};
}

Status UcxPeer::open_ring(const Offer& offer) {
  if (!offer.ring || !transport_.can_use_rings() || offer.machine != transport_.machine())
    return fail(TC_ERR_UNSUPPORTED, "no way 'ring' to {}: it {}", address_,
                offer.machine != transport_.machine() ? "shares no memory with us" : "is not offered");
  TC_CHECK(reach_memory(offer, "ring"));
  void* const memory = remote_key_->pointer(offer.address);
  const bool mapped = memory != nullptr && reinterpret_cast<uintptr_t>(memory) % 64 == 0 &&
                      is_shared_mapping(memory, ring_memory_bytes(offer.ring_bytes));
  if (!mapped || RingView::at(memory, offer.ring_bytes).control->nonce != offer.nonce) {
    remote_key_.reset();
    return fail(TC_ERR_UNSUPPORTED, "no way 'ring' to {}: its memory cannot be mapped", address_);
  }
  way_ = Way::ring;
  out_.open_ring(RingView::at(memory, offer.ring_bytes));
  send_signal(Signal::use_ring);
  return {};
}

Status UcxPeer::open_put(const Offer& offer) {
  if (!offer.put || !transport_.options().allow_put)
    return fail(TC_ERR_UNSUPPORTED, "no way 'put' to {}: {} does not allow it", address_, offer.put ? "we" : "it");
  TC_CHECK(reach_memory(offer, "put"));
  way_ = Way::put;
  send_signal(Signal::use_put);
  out_.open_put(remote_key_->get(), offer.address, offer.ring_bytes, transport_.options().batch_bytes);
  return {};
}

}  // namespace tc::transport
