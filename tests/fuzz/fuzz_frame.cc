// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a frame: its body is refused, or what was read from it is written as something that reads the same.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "wire/bundle.h"
#include "wire/cluster_event.h"
#include "wire/compile.h"
#include "wire/frame.h"
#include "wire/statistics.h"

namespace {

using namespace tc::wire;  // NOLINT

void expect(bool truth) {
  if (!truth) std::abort();
}

void check_call(uint8_t flags, tc::ByteView body) {
  if ((flags & flag_call_header) != 0) {
    if (body.size() < call_header_bytes) return;
    std::byte copy[call_header_bytes];
    write_call_header(copy, read_call_header(body.data()));
    expect(std::memcmp(copy, body.data(), call_header_bytes) == 0);
    body = body.subspan(call_header_bytes);
  }
  if ((flags & flag_return_address) == 0) return;
  size_t size = 0;
  if (const auto return_address = decode_return_address(body, size)) {
    expect(size <= body.size() && size % alignment == 0);
    size_t again = 0;
    const auto bytes = encode_return_address(*return_address);
    const auto same = decode_return_address(bytes, again);
    expect(same && again == size && same->address == return_address->address &&
           same->instance == return_address->instance);
  }
}

void check_code(tc::ByteView body) {
  const auto code = decode_code(body);
  if (!code) return;
  tc::Bytes out;
  append_code(out, code->head, code->bundle);
  out.insert(out.end(), code->payload.begin(), code->payload.end());
  const auto same = decode_code(out);
  expect(same && same->head.id == code->head.id && same->head.carried == code->head.carried &&
         same->head.chain == code->head.chain);
  expect(std::ranges::equal(same->bundle, code->bundle) && std::ranges::equal(same->payload, code->payload));
  (void)tc::Bundle::read_carried(code->bundle, code->head.carried, code->head.id);
}

void check_reply(tc::ByteView body) {
  const auto reply = decode_reply(body);
  if (!reply) return;
  const auto bytes = encode_reply(*reply);
  const auto same = decode_reply(bytes);
  expect(same && same->token == reply->token && same->status == reply->status && same->code == reply->code);
  expect(same->message == reply->message && std::ranges::equal(same->bytes, reply->bytes));
}

void check_cluster_event(uint32_t what, tc::ByteView body) {
  if (what == event_gone)
    if (const auto gone = decode_gone(body)) expect(decode_gone(encode_gone(*gone))->reason == gone->reason);
  if (what == event_marker)
    if (const auto marker = decode_marker(body)) expect(std::ranges::equal(encode_marker(*marker), body));
  if (what == event_report)
    if (const auto report = decode_report(body)) expect(std::ranges::equal(encode_report(*report), body));
}

void check_compile(uint32_t what, tc::ByteView body) {
  if (what == compile_question) {
    const auto question = decode_compile_question(body);
    if (!question) return;
    const auto bytes = encode_compile_question(*question);
    const auto same = decode_compile_question(bytes);
    expect(same && same->token == question->token && same->triple == question->triple && same->cpu == question->cpu);
    expect(same->features == question->features && std::ranges::equal(same->bundle, question->bundle));
    (void)tc::Bundle::read_carried(question->bundle, question->head.carried, question->head.id);
  } else if (const auto answer = decode_compile_answer(body)) {
    const auto bytes = encode_compile_answer(*answer);
    const auto same = decode_compile_answer(bytes);
    expect(same && same->token == answer->token && same->status == answer->status);
    expect(same->message == answer->message && std::ranges::equal(same->object, answer->object));
  }
}

void check_statistics(uint32_t what, tc::ByteView body) {
  if (what == statistics_question) {
    expect(decode_statistics_question(body).has_value() == body.empty());
  } else if (const auto answer = decode_statistics_answer(body)) {
    const auto same = decode_statistics_answer(encode_statistics_answer(*answer));
    expect(same && same->status == answer->status && same->message == answer->message);
    expect(same->report.name == answer->report.name && same->report.running == answer->report.running);
    expect(same->report.numbers == answer->report.numbers && same->report.numbers.size() <= most_statistics);
    expect(same->report.failures == answer->report.failures && same->report.times == answer->report.times);
    expect(same->report.ifuncs == answer->report.ifuncs && same->report.ifuncs.size() <= most_ifuncs);
    expect(same->report.links == answer->report.links && same->report.links.size() <= most_links);
  }
}

void check_control(Kind kind, tc::ByteView body) {
  if (kind == Kind::need)
    if (const auto need = decode_need(body)) expect(std::ranges::equal(encode_need(*need), body));
  if (kind == Kind::barrier)
    if (const auto barrier = decode_barrier(body)) expect(std::ranges::equal(encode_barrier(*barrier), body));
  if (kind == Kind::cancel)
    if (const auto token = decode_cancel(body)) expect(std::ranges::equal(encode_cancel(*token), body));
  if (kind == Kind::none)  // the greeting, which is no frame
    if (const auto hello = decode_hello(body)) expect(std::ranges::equal(encode_hello(*hello), body));
  if (kind == Kind::disconnect)
    if (const auto disconnect = decode_disconnect(body))
      expect(decode_disconnect(encode_disconnect(*disconnect))->reason == disconnect->reason);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < header_bytes) return 0;
  uint64_t word = 0;
  std::memcpy(&word, data, sizeof word);
  const auto header = decode(word);
  expect(encode(header) == word);
  expect(stride(header.length) >= header_bytes + header.length);
  const tc::ByteView body(reinterpret_cast<const std::byte*>(data) + header_bytes, size - header_bytes);
  switch (header.kind) {
    case Kind::call: check_call(header.flags, body); break;
    case Kind::call_code:
    case Kind::code: check_code(body); break;
    case Kind::reply: check_reply(body); break;
    case Kind::cluster_event: check_cluster_event(header.number, body); break;
    case Kind::compile: check_compile(header.number, body); break;
    case Kind::statistics: check_statistics(header.number, body); break;
    default: check_control(header.kind, body); break;
  }
  return 0;
}
