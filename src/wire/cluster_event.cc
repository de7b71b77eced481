// SPDX-License-Identifier: Apache-2.0
#include "wire/cluster_event.h"

#include "wire/text.h"

namespace tc::wire {

Bytes encode_gone(const Gone& gone) {
  Bytes out;
  Writer(out).u64(gone.instance).u64(gone.witness).u32(gone.node_id).str8(gone.name).str16(gone.reason);
  return out;
}

Result<Gone> decode_gone(ByteView body) {
  Reader in(body);
  Gone gone;
  gone.instance = in.u64();
  gone.witness = in.u64();
  gone.node_id = in.u32();
  gone.name = in.str8();
  gone.reason = words(in.str16());
  TC_CHECK(in.finish_exactly("cluster event of a lost node"));
  if (!printable(gone.name)) return fail(TC_ERR_MALFORMED, "cluster event of a lost node: its name is not printable");
  return gone;
}

Bytes encode_marker(const Marker& marker) {
  Bytes out;
  Writer(out).u64(marker.origin).u32(marker.number).u8(marker.flags);
  return out;
}

Result<Marker> decode_marker(ByteView body) {
  Reader in(body);
  Marker marker;
  marker.origin = in.u64();
  marker.number = in.u32();
  marker.flags = in.u8();
  TC_CHECK(in.finish_exactly("snapshot marker"));
  if (marker.flags > (marker_from_child | marker_unrecorded))
    return fail(TC_ERR_MALFORMED, "snapshot marker: flags are {} when 1 and 2 are known", marker.flags);
  return marker;
}

Bytes encode_report(const Report& report) {
  Bytes out;
  Writer w(out);
  w.u64(report.origin).u32(report.number).u8(report.is_void ? 1 : 0);
  for (const auto token : report.tokens) w.u64(token);
  return out;
}

Result<Report> decode_report(ByteView body) {
  Reader in(body);
  Report report;
  report.origin = in.u64();
  report.number = in.u32();
  const auto verdict = in.u8();
  TC_CHECK(in.finish("snapshot report"));
  if (verdict > 1) return fail(TC_ERR_MALFORMED, "snapshot report: its verdict is {} when 0 and 1 are known", verdict);
  report.is_void = verdict == 1;
  if (in.remaining() % sizeof(uint64_t) != 0)
    return fail(TC_ERR_MALFORMED, "snapshot report: {} bytes of tokens when a token takes {}", in.remaining(),
                sizeof(uint64_t));
  report.tokens.reserve(in.remaining() / sizeof(uint64_t));
  while (in.remaining() != 0) report.tokens.push_back(in.u64());
  return report;
}

}  // namespace tc::wire
