// SPDX-License-Identifier: Apache-2.0
//
// Frames about code that one node compiles for another: compile_requests.h at the node that asks, compile_service.h at
// the one that helps.
#include <spdlog/logger.h>

#include <algorithm>

#include "node/link/link.h"
#include "node/node.h"

namespace tc::node {

void Link::post_compile(uint32_t what, ByteView body) {
  if (const auto sent = post(wire::Kind::compile, what, body); !sent && state_ != State::lost) hang_up(sent.error());
}

void Link::answer_compile(uint64_t token, const Result<Bytes>& object) {
  wire::CompileAnswer answer;
  answer.token = token;
  answer.status = object ? TC_OK : object.error().code;
  if (object)
    answer.object = *object;
  else
    answer.message = object.error().message;
  if (object && object->size() + 64 > peer_.max_message)
    return answer_compile(token, fail(TC_ERR_TOO_LARGE, "the object has {} bytes when {} takes at most {}",
                                      object->size(), peer_label(), peer_.max_message));
  post_compile(wire::compile_answer, wire::encode_compile_answer(answer));
}

bool Link::on_compile(uint32_t what, ByteView body) {
  const Bytes copy(body.begin(), body.end());
  if (what == wire::compile_question) {
    const auto question = wire::decode_compile_question(copy);
    if (!question) return on_broken(question.error().message), false;
    if (const auto taken = take_compile_job(*question); !taken) answer_compile(question->token, fail(taken.error()));
    return true;
  }
  if (what == wire::compile_answer) {
    const auto answer = wire::decode_compile_answer(copy);
    if (!answer) return on_broken(answer.error().message), false;
    node_.compile_requests().on_answer(*this, *answer);
    return true;
  }
  return on_broken(fmt::format("a compile frame is of type {} when 0 and 1 are known", what)), false;
}

// Whether we do that is our operator's decision.
Status Link::take_compile_job(const wire::CompileQuestion& question) {
  TC_CHECK(node_.may_compile_for(*this));
  TC_ASSIGN(const auto triple, TargetTriple::parse(question.triple));
  TC_ASSIGN(const auto bundle, Bundle::read_carried(question.bundle, question.head.carried, question.head.id));
  const auto slice = bundle.find(SliceRole::target, SliceForm::bitcode, triple);
  if (!slice) return fail(TC_ERR_NO_SLICE, "no bitcode for {} came with the question", triple.text);
  const auto limit = std::min(question.limit_ms, node_.config().compile_limit_ms);
  node_.log().info("ifunc '{}' is compiled for {}", bundle.manifest().name, peer_label());
  return node_.compile_service().add({mark_, question.token, triple.text, question.cpu, question.features,
                                      target::BitcodeSlice(bundle, *slice), now_ns() + uint64_t{limit} * 1'000'000,
                                      limit});
}

void Link::on_compiled() {
  if (!waits_for_compiler_) return;
  compiled_ = true;
  node_.come_back_to(*this);
}

}  // namespace tc::node
