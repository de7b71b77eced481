// SPDX-License-Identifier: Apache-2.0
#include "wire/statistics.h"

#include <algorithm>
#include <tuple>

#include "wire/text.h"

namespace tc::wire {

void NodeReport::keep_busiest(size_t most) {
  std::ranges::sort(links, [](const auto& one, const auto& other) {
    return std::tie(other.calls, one.peer) < std::tie(one.calls, other.peer);
  });
  links.resize(std::min(links.size(), most));
  // The sum stands behind all others.
  const auto key = [](const auto& one) {
    return std::tuple(one.name == other_ifuncs, ~one.calls, std::string_view(one.name));
  };
  std::ranges::sort(ifuncs, {}, key);
  if (ifuncs.size() <= most) return;
  IfuncReport rest{.name = std::string(other_ifuncs), .run = {}, .latency = {}};
  const auto kept = most - std::min<size_t>(most, 1);
  for (size_t i = kept; i < ifuncs.size(); ++i) {
    rest.calls += ifuncs[i].calls;
    rest.failures += ifuncs[i].failures;
    rest.run += ifuncs[i].run;
    rest.latency += ifuncs[i].latency;
  }
  ifuncs.resize(kept);
  if (most != 0) ifuncs.push_back(std::move(rest));
}

Status decode_statistics_question(ByteView body) {
  if (body.empty()) return {};
  return fail(TC_ERR_MALFORMED, "statistics question: it has {} bytes when it has no body", body.size());
}

namespace {

// The classes that are empty take no room.
void write(Writer& w, const Times& times) {
  uint16_t present = 0;
  for (size_t i = 0; i < Times::classes; ++i)
    if (times.counts[i] != 0) present = static_cast<uint16_t>(present | (1u << i));
  w.u64(times.sum_ns).u16(present);
  for (const auto count : times.counts)
    if (count != 0) w.u64(count);
}

void write_use(Writer& w, const NodeReport& report) {
  w.u16(static_cast<uint16_t>(report.failures.size()));
  for (const auto& [name, count] : report.failures) w.str8(name).u64(count);
  w.u16(static_cast<uint16_t>(report.times.size()));
  for (const auto& [name, times] : report.times) write(w.str8(name), times);
  w.u16(static_cast<uint16_t>(report.ifuncs.size()));
  for (const auto& one : report.ifuncs) {
    w.str8(one.name).u64(one.calls).u64(one.failures);
    write(w, one.run);
    write(w, one.latency);
  }
  w.u16(static_cast<uint16_t>(report.links.size()));
  for (const auto& one : report.links)
    w.str8(one.peer)
        .str8(one.transport)
        .u64(one.calls)
        .u64(one.received_bytes)
        .u64(one.sent_bytes)
        .u64(one.waiting_bytes);
}

}  // namespace

Bytes encode_statistics_answer(const StatisticsAnswer& answer) {
  const auto& report = answer.report;
  Bytes out;
  Writer w(out);
  w.u32(static_cast<uint32_t>(answer.status)).str16(answer.message);
  if (answer.status != TC_OK) return out;
  w.str8(report.name).str8(report.version).str8(report.running).u32(report.node_id).u64(report.uptime_ns);
  w.u8(report.is_draining ? 1 : 0).u16(static_cast<uint16_t>(report.numbers.size()));
  for (const auto& [name, value] : report.numbers) w.str8(name).u64(value);
  write_use(w, report);
  return out;
}

Bytes encode_statistics_answer(StatisticsAnswer answer, size_t most_bytes) {
  auto& report = answer.report;
  auto bytes = encode_statistics_answer(answer);
  for (size_t most = most_ifuncs / 2; bytes.size() > most_bytes; most /= 2) {
    report.keep_busiest(most);
    bytes = encode_statistics_answer(answer);
    if (most == 0) break;
  }
  return bytes;
}

namespace {

Status check_texts(const NodeReport& report) {
  for (const auto& label : {report.name, report.version, report.running})
    if (!printable(label))
      return fail(TC_ERR_MALFORMED, "statistics answer: a name, a version or an ifunc is not printable");
  return {};
}

// A list behind its length. `what`: "numbers"; `read_one` takes the number of each.
template <class One, class ReadOne>
Status read_list(Reader& in, std::vector<One>& list, std::string_view what, size_t most, const ReadOne& read_one) {
  const auto count = in.u16();
  if (count > most)
    return fail(TC_ERR_MALFORMED, "statistics answer: {} {} when at most {} are taken", count, what, most);
  list.reserve(count);
  for (uint16_t i = 0; i < count && in.ok(); ++i) TC_CHECK(read_one(i));
  return {};
}

// A name and what belongs to it, for a list of pairs.
template <class One, class ReadValue>
Status read_named(Reader& in, std::vector<One>& list, std::string_view what, size_t most, const ReadValue& read_value) {
  return read_list(in, list, what, most, [&](uint16_t i) -> Status {
    const auto name = in.str8();
    auto value = read_value();
    if (!in.ok()) return {};
    if (name.empty() || name.size() > longest_statistic_name || !visible(name))
      return fail(
          TC_ERR_MALFORMED,
          "statistics answer: the name of number {} of the {} has {} bytes, or bytes that cannot be printed; 1 to {} "
          "are taken",
          i, what, name.size(), longest_statistic_name);
    list.emplace_back(name, std::move(value));
    return {};
  });
}

Times read_times(Reader& in) {
  Times times;
  times.sum_ns = in.u64();
  const auto present = in.u16();
  if (present >> Times::classes != 0) in.refuse();
  for (size_t i = 0; i < Times::classes && in.ok(); ++i)
    if ((present >> i & 1) != 0 && (times.counts[i] = in.u64()) == 0) in.refuse();
  return times;
}

Status read_use(Reader& in, NodeReport& report) {
  TC_CHECK(read_named(in, report.failures, "failures", most_failures, [&] { return in.u64(); }));
  TC_CHECK(read_named(in, report.times, "times", most_times, [&] { return read_times(in); }));
  TC_CHECK(read_list(in, report.ifuncs, "ifuncs", most_ifuncs, [&](uint16_t) -> Status {
    auto& one = report.ifuncs.emplace_back();
    one.name = in.str8();
    one.calls = in.u64();
    one.failures = in.u64();
    one.run = read_times(in);
    one.latency = read_times(in);
    if (!in.ok() || (!one.name.empty() && printable(one.name))) return {};
    return fail(TC_ERR_MALFORMED, "statistics answer: the name of an ifunc is empty or not printable");
  }));
  return read_list(in, report.links, "links", most_links, [&](uint16_t) -> Status {
    auto& one = report.links.emplace_back();
    one.peer = in.str8();
    one.transport = in.str8();
    one.calls = in.u64();
    one.received_bytes = in.u64();
    one.sent_bytes = in.u64();
    one.waiting_bytes = in.u64();
    if (!in.ok() || (printable(one.peer) && !one.transport.empty() && visible(one.transport))) return {};
    return fail(TC_ERR_MALFORMED, "statistics answer: a link's peer or transport is not printable");
  });
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
  TC_CHECK(read_named(in, report.numbers, "numbers", most_statistics, [&] { return in.u64(); }));
  TC_CHECK(read_use(in, report));
  TC_CHECK(in.finish_exactly("statistics answer"));
  TC_CHECK(check_texts(report));
  return answer;
}

}  // namespace tc::wire
