// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/details.h"

#include <algorithm>

#include "base/content_id.h"
#include "wire/text.h"

namespace tc::transport {

namespace {
constexpr size_t hash_bytes = 8;
}

Bytes encode_details(const UcxDetails& details) {
  Bytes out;
  Writer w(out);
  w.str8(details.version).u8(details.tcp_alone ? 1 : 0).u64(details.token).u32(details.window_bytes);
  w.u16(static_cast<uint16_t>(details.worker_address.size())).bytes(details.worker_address);
  w.u64(details.address).u16(static_cast<uint16_t>(details.key.size())).bytes(details.key);
  const auto hash = ContentId::of(out);
  w.bytes(ByteView(hash.bytes).first(hash_bytes));
  return out;
}

Result<UcxDetails> decode_details(ByteView bytes) {
  Reader r(bytes);
  UcxDetails details;
  details.version = r.str8();
  const uint8_t flags = r.u8();
  details.tcp_alone = flags == 1;
  details.token = r.u64();
  details.window_bytes = r.u32();
  const ByteView address = r.bytes(r.u16());
  details.worker_address.assign(address.begin(), address.end());
  details.address = r.u64();
  const ByteView key = r.bytes(r.u16());
  details.key.assign(key.begin(), key.end());
  const ByteView hash = r.bytes(hash_bytes);
  TC_CHECK(r.finish_exactly("its details about UCX"));
  if (!std::ranges::equal(hash,
                          ByteView(ContentId::of(bytes.first(bytes.size() - hash_bytes)).bytes).first(hash_bytes)))
    return fail(TC_ERR_MALFORMED, "its details about UCX do not match their hash");
  if (flags > 1 || !wire::visible(details.version) || address.empty() || details.token >> 48 != 0 ||
      details.window_bytes < min_window_bytes || details.window_bytes > max_window_bytes)
    r.refuse();
  TC_CHECK(r.finish_exactly("its details about UCX"));
  return details;
}

}  // namespace tc::transport
