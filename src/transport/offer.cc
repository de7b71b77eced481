// SPDX-License-Identifier: Apache-2.0
#include "transport/offer.h"

#include "transport/ring.h"

namespace tc::transport {

namespace {

constexpr uint8_t offer_version = 1;
constexpr uint8_t bit_ring = 1, bit_put = 2;

}  // namespace

Bytes encode_offer(const Offer& offer) {
  Bytes out;
  Writer w(out);
  w.u8(offer_version).u8(static_cast<uint8_t>((offer.ring ? bit_ring : 0) | (offer.put ? bit_put : 0)));
  w.str8(offer.ucx_version).u64(offer.machine).u64(offer.nonce).u32(offer.ring_bytes).u64(offer.address);
  w.u16(static_cast<uint16_t>(offer.key.size())).bytes(offer.key);
  return out;
}

Result<Offer> decode_offer(ByteView bytes) {
  Reader r(bytes);
  if (const uint8_t version = r.u8(); r.ok() && version != offer_version)
    return fail(TC_ERR_VERSION, "the peer's offer of ways has version {}, ours has {}", version, offer_version);
  Offer offer;
  const uint8_t ways = r.u8();
  offer.ring = (ways & bit_ring) != 0;
  offer.put = (ways & bit_put) != 0;
  offer.ucx_version = r.str8();
  offer.machine = r.u64();
  offer.nonce = r.u64();
  offer.ring_bytes = r.u32();
  offer.address = r.u64();
  const ByteView key = r.bytes(r.u16());
  offer.key.assign(key.begin(), key.end());
  TC_CHECK(r.finish_exactly("the peer's offer of ways"));
  if ((offer.ring || offer.put) && (!ring_size_is_valid(offer.ring_bytes) || offer.key.empty()))
    return fail(TC_ERR_MALFORMED, "the peer offers a ring of {} bytes with a key of {}", offer.ring_bytes,
                offer.key.size());
  return offer;
}

}  // namespace tc::transport
