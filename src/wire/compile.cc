// SPDX-License-Identifier: Apache-2.0
#include "wire/compile.h"

#include "wire/text.h"

namespace tc::wire {

Bytes encode_compile_question(const CompileQuestion& question) {
  Bytes out;
  Writer(out)
      .u64(question.token)
      .u32(question.limit_ms)
      .str8(question.triple)
      .str8(question.cpu)
      .str16(question.features);
  Bytes section;  // separate, because padding counts from its begin
  append_code(section, question.head, question.bundle);
  Writer(out).bytes(section);
  return out;
}

Result<CompileQuestion> decode_compile_question(ByteView body) {
  Reader in(body);
  CompileQuestion question;
  question.token = in.u64();
  question.limit_ms = in.u32();
  question.triple = in.str8();
  question.cpu = in.str8();
  question.features = in.str16();
  TC_CHECK(in.finish("compile question"));
  // These strings become arguments of a program.
  for (const auto& label : {question.triple, question.cpu, question.features})
    if (!visible(label))
      return fail(TC_ERR_MALFORMED, "compile question: triple, CPU or features hold bytes that cannot be printed");
  TC_ASSIGN(const auto code, decode_code(in.rest()));
  if (!code.head.chain.empty())
    return fail(TC_ERR_MALFORMED,
                "compile question: it is asked on behalf of {} others, and code is compiled for nobody",
                code.head.chain.keys().size());
  if (!code.payload.empty())
    return fail(TC_ERR_MALFORMED, "compile question: {} bytes are left over behind the code", code.payload.size());
  question.head = code.head;
  question.bundle = code.bundle;
  return question;
}

Bytes encode_compile_answer(const CompileAnswer& answer) {
  Bytes out;
  out.reserve(14 + answer.message.size() + answer.object.size());
  Writer(out).u64(answer.token).u32(static_cast<uint32_t>(answer.status)).str16(answer.message).bytes(answer.object);
  return out;
}

Result<CompileAnswer> decode_compile_answer(ByteView body) {
  Reader in(body);
  CompileAnswer answer;
  answer.token = in.u64();
  answer.status = status_from_wire(in.u32());
  answer.message = words(in.str16());
  TC_CHECK(in.finish("compile answer"));
  answer.object = in.rest();
  if ((answer.status == TC_OK) == answer.object.empty())
    return fail(TC_ERR_MALFORMED, "compile answer: its status is {} and its object has {} bytes",
                static_cast<int>(answer.status), answer.object.size());
  return answer;
}

}  // namespace tc::wire
