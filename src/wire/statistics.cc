// SPDX-License-Identifier: Apache-2.0
#include "wire/statistics.h"

#include "wire/text.h"

namespace tc::wire {

Status decode_statistics_question(ByteView body) {
  if (body.empty()) return {};
  return fail(TC_ERR_MALFORMED, "statistics question: it has {} bytes when it has no body", body.size());
}

Bytes encode_statistics_answer(const StatisticsAnswer& answer) {
  const auto& report = answer.report;
  Bytes out;
  Writer w(out);
  w.u32(static_cast<uint32_t>(answer.status)).str16(answer.message);
  if (answer.status != TC_OK) return out;
  w.str8(report.name).str8(report.version).str8(report.running).u32(report.node_id).u64(report.uptime_ns);
  w.u8(report.is_draining ? 1 : 0).u16(static_cast<uint16_t>(report.numbers.size()));
  for (const auto& [name, value] : report.numbers) w.str8(name).u64(value);
  return out;
}

namespace {

Status check_texts(const NodeReport& report) {
  for (const auto& label : {report.name, report.version, report.running})
    if (!printable(label))
      return fail(TC_ERR_MALFORMED, "statistics answer: a name, a version or an ifunc is not printable");
  return {};
}

Status read_numbers(Reader& in, NodeReport& report) {
  const auto count = in.u16();
  if (count > most_statistics)
    return fail(TC_ERR_MALFORMED, "statistics answer: {} numbers when at most {} are taken", count, most_statistics);
  report.numbers.reserve(count);
  for (uint16_t i = 0; i < count && in.ok(); ++i) {
    const auto name = in.str8();
    const auto value = in.u64();
    if (!in.ok()) break;
    if (name.empty() || name.size() > longest_statistic_name || !visible(name))
      return fail(TC_ERR_MALFORMED,
                  "statistics answer: the name of number {} has {} bytes, or bytes that cannot be printed; 1 to {} are "
                  "taken",
                  i, name.size(), longest_statistic_name);
    report.numbers.emplace_back(name, value);
  }
  return {};
}

}  // namespace

Result<StatisticsAnswer> decode_statistics_answer(ByteView body) {
  Reader in(body);
  StatisticsAnswer answer;
  auto& report = answer.report;
  answer.status = status_from_wire(in.u32());
  answer.message = words(in.str16());
  if (in.ok() && answer.status != TC_OK) {
    TC_CHECK(in.finish_exactly("statistics answer"));
    return answer;
  }
  report.name = in.str8();
  report.version = in.str8();
  report.running = in.str8();
  report.node_id = in.u32();
  report.uptime_ns = in.u64();
  const auto flags = in.u8();
  report.is_draining = flags == 1;
  if (flags > 1) return fail(TC_ERR_MALFORMED, "statistics answer: its flags are {} when 0 and 1 are known", flags);
  TC_CHECK(read_numbers(in, report));
  TC_CHECK(in.finish_exactly("statistics answer"));
  TC_CHECK(check_texts(report));
  return answer;
}

}  // namespace tc::wire
