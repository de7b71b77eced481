// SPDX-License-Identifier: Apache-2.0
#include "node/remote_compile/compiles_for_peers.h"

#include <spdlog/logger.h>

#include <algorithm>

#include "base/clock.h"
#include "node/config.h"
#include "node/links.h"

namespace tc::node {

Status CompilesForPeers::start(std::function<void()> wake) {
  if (common_.config.compile_for == CompileFor::none) return {};
  TC_ASSIGN(auto compiler, CompileService::find_compiler(common_.config.compiler));
  service_ = std::make_unique<CompileService>(std::move(compiler), std::move(wake));
  return service_->start();
}

// Whether this node does that is its operator's decision. Bitcode can do what it likes with the compiler that reads it, so
// the peer must be one that may run any code here.
Status CompilesForPeers::may_compile_for(const Link& link) const {
  if (common_.config.compile_for == CompileFor::none)
    return fail(TC_ERR_DENIED, "{} compiles for nobody; start it with --compile-for user or any", common_.self.label);
  const auto* const rights = link.receiver().rights();
  if (rights == nullptr || rights->run() != trust::Run::any)
    return fail(TC_ERR_DENIED, "{} compiles only for peers that may run any code at it, and {} may not",
                common_.self.label, rights != nullptr ? rights->whose() : link.peer_label());
  if (common_.config.compile_for == CompileFor::any || link.channel().origin().same_user) return {};
  return fail(TC_ERR_DENIED,
              "{} compiles for processes of its own user on this host only, and {} is none; start it with "
              "--compile-for any",
              common_.self.label, link.peer_label());
}

void CompilesForPeers::on_question(Link& from, const wire::CompileQuestion& question) {
  if (const auto taken = take(from, question); !taken) answer(from, question.token, fail(taken.error()));
}

Status CompilesForPeers::take(Link& from, const wire::CompileQuestion& question) {
  TC_CHECK(may_compile_for(from));
  TC_ASSIGN(const auto triple, TargetTriple::parse(question.triple));
  TC_ASSIGN(const auto bundle, Bundle::read_carried(question.bundle, question.head.carried, question.head.id));
  const auto slice = bundle.find(SliceRole::target, SliceForm::bitcode, triple);
  if (!slice) return fail(TC_ERR_NO_SLICE, "no bitcode for {} came with the question", triple.text);
  const auto limit = std::min(question.limit_ms, common_.config.compile_limit_ms);
  const auto peer = from.peer_label();
  const AboutLink about(from.channel(), {.ifunc = bundle.manifest().name, .content_id = &bundle.id()});
  common_.log.info("ifunc '{}' is compiled for {}", bundle.manifest().name, peer);
  return service_->add({from.id(), question.token, triple.text, question.cpu, question.features,
                        target::BitcodeSlice(bundle, *slice), now_ns() + uint64_t{limit} * 1'000'000, limit});
}

void CompilesForPeers::answer(Link& link, uint64_t token, const Result<Bytes>& object) {
  if (object && object->size() + 64 > link.peer().max_message)
    return answer(link, token,
                  fail(TC_ERR_TOO_LARGE, "the object has {} bytes when {} takes at most {}", object->size(),
                       link.peer_label(), link.peer().max_message));
  wire::CompileAnswer answer;
  answer.token = token;
  answer.status = object ? TC_OK : object.error().code;
  if (object)
    answer.object = *object;
  else
    answer.message = object.error().message;
  link.post_compile(wire::compile_answer, wire::encode_compile_answer(answer));
}

void CompilesForPeers::send_answers() {
  for (const auto& done : service_->take()) {
    if (done.object) ++common_.counters.compiled_for_others;
    if (auto* const link = links_.with_id(done.link)) answer(*link, done.token, done.object);
  }
}

void CompilesForPeers::forget(uint64_t link_id) {
  if (service_ != nullptr) service_->forget(link_id);
}

}  // namespace tc::node
