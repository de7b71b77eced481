// SPDX-License-Identifier: Apache-2.0
//
// Remote compilation (src/node/remote_compile). A node without LLVM sends a bundle with bitcode to a compile helper,
// and gets an object for its CPU. Both are frames of the stream. The frame's number says which one it is.
//
// Threads: any; plain values.
#pragma once

#include "wire/frame.h"

namespace tc::wire {

inline constexpr uint32_t compile_question = 0;
inline constexpr uint32_t compile_answer = 1;

struct CompileQuestion {
  uint64_t token = 0;     // the caller's name for the answer
  uint32_t limit_ms = 0;  // how long the caller will wait
  std::string triple;     // of the machine to compile for; printable, as the next two
  std::string cpu;        // LLVM's name of its CPU; empty: any of that triple
  std::string features;   // features that `cpu` does not imply, in LLVM's form: "+lse,+sve"
  CodeHead head;
  ByteView bundle;  // with its bitcode for the triple; in a decoded question it points into the frame
};
Bytes encode_compile_question(const CompileQuestion& question);
Result<CompileQuestion> decode_compile_question(ByteView body);

struct CompileAnswer {
  uint64_t token = 0;
  tc_status_t status = TC_OK;
  std::string message;  // readable, empty when status is TC_OK
  ByteView object;      // empty unless status is TC_OK; in a decoded answer it points into the frame
};
Bytes encode_compile_answer(const CompileAnswer& answer);
Result<CompileAnswer> decode_compile_answer(ByteView body);

}  // namespace tc::wire
