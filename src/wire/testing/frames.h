// SPDX-License-Identifier: Apache-2.0
//
// For tests only: frames as every test of the wire format needs them.
#pragma once

#include "wire/compile.h"
#include "wire/frame.h"
#include "wire/statistics.h"

namespace tc::wire::testing {

inline Bytes code_body(std::string_view bundle, std::string_view payload) {
  Bytes out;
  append_code(out, {.id = ContentId::of(as_bytes("x")), .carried = 5, .bundle_size = 0}, as_bytes(bundle));
  Writer(out).bytes(as_bytes(payload));
  return out;
}

inline Hello sample_hello() {
  return {.protocol = protocol_version,
          .abi = 1,
          .instance = 77,
          .node_id = 4,
          .max_message = 1 << 20,
          .name = "node four",
          .address = "127.0.0.1:4711",
          .triple = "x86_64-linux-gnu",
          .cpu = "sapphirerapids",
          .last_words = "node 4 ended"};
}

inline Times sample_times() {
  Times times;
  times.add(250);
  times.add(3'000, 3);
  times.add(UINT64_MAX / 2);
  return times;
}

inline StatisticsAnswer sample_answer() {
  return {.report = {.name = "node four",
                     .version = "0.1.0",
                     .running = "tsi",
                     .node_id = 4,
                     .uptime_ns = 1'500'000'000,
                     .is_draining = true,
                     .numbers = {{"executed", 7}, {"code-bytes", uint64_t{1} << 40}},
                     .failures = {{"denied", 2}, {"code", 1}},
                     .times = {{"load", sample_times()}, {"handshake", {}}},
                     .ifuncs = {{"two words", 9, 1, sample_times(), sample_times()}, {"other", 1, 0, {}, {}}},
                     .links = {{"node 3 (a name)", "shm", 5, 6, 7, 8}}}};
}

inline Bytes sample_question() {
  CompileQuestion question;
  question.token = 0x1122334455667788;
  question.limit_ms = 10'000;
  question.triple = "aarch64-unknown-linux-gnu";
  question.cpu = "generic";
  question.features = "+lse,+sve";
  question.head = {ContentId::of(as_bytes("a manifest")), 5, 0};
  question.bundle = as_bytes("the bundle");
  return encode_compile_question(question);
}

}  // namespace tc::wire::testing
