// SPDX-License-Identifier: Apache-2.0
#include "node/code/compile_requests.h"

#include <spdlog/logger.h>

#include <algorithm>

#include "node/config.h"
#include "node/links.h"

namespace tc::node {

namespace {
// The helper keeps the limit itself, and its message says more.
constexpr uint64_t grace_ns = 1'000'000'000;
// Ifuncs that wait at a time, which bounds the bundles that are kept for them.
constexpr size_t open_limit = 64;
}  // namespace

const target::Cpu& CompileRequests::cpu() {
  if (cpu_.name.empty()) cpu_ = target::host_cpu();
  return cpu_;
}

std::string CompileRequests::asked(std::string_view helper) {
  return fmt::format(
      "it holds only bitcode for this node, which has no LLVM and asked {} to compile it for {} ({}{}{})", helper,
      common_.config.code.triple.text, cpu().name, cpu().features.empty() ? "" : " ", cpu().features);
}

// ---- How they leave

Result<Link*> CompileRequests::helper() {
  if (auto* const known = links_.with_id(helper_)) return known;
  TC_ASSIGN(auto* const link, links_.find_or_reach(common_.config.compile_at));
  helper_ = link->id();
  return link;
}

Status CompileRequests::ask(Bundle bundle) {
  if (open_.size() >= open_limit)
    return fail(TC_ERR_BUSY, "{} ifuncs wait to be compiled at {} already, and at most {} may", open_.size(),
                common_.config.compile_at, open_limit);
  auto link = helper();
  if (!link) return context(asked(common_.config.compile_at), std::move(link).error());
  const auto limit_ns = uint64_t{common_.config.compile_limit_ms} * 1'000'000;
  open_.push_back({++tokens_, (*link)->id(), false, now_ns() + limit_ns + grace_ns, std::move(bundle)});
  ++common_.counters.compile_requests;
  if ((*link)->is_ready()) send(**link, open_.back());
  return {};
}

void CompileRequests::send(Link& link, Request& request) {
  request.sent = true;
  const auto& triple = common_.config.code.triple;
  const auto slice = request.bundle.find(SliceRole::target, SliceForm::bitcode, triple);
  const auto carried = slice ? uint64_t{1} << *slice : 0;
  const auto bytes = request.bundle.bytes_for(carried);
  wire::CompileQuestion question;
  question.token = request.token;
  question.limit_ms = common_.config.compile_limit_ms;
  question.triple = triple.text;
  question.cpu = cpu().name;
  question.features = cpu().features;
  question.head = {request.bundle.id(), carried, static_cast<uint32_t>(bytes.size())};
  question.bundle = bytes;
  common_.log.info("{} is asked to compile ifunc '{}'", link.peer_label(), request.bundle.manifest().name);
  link.post_compile(wire::compile_question, wire::encode_compile_question(question));
}

void CompileRequests::on_link_ready(Link& link) {
  for (auto& request : open_)
    if (request.helper == link.id() && !request.sent) send(link, request);
}

// ---- How they end

CompileRequests::Position CompileRequests::end(Position request, std::string_view helper,
                                               const Result<ByteView>& object) {
  on_end_(request->bundle, helper, object);
  return open_.erase(request);
}

void CompileRequests::on_answer(const Link& from, const wire::CompileAnswer& answer) {
  const auto request = std::ranges::find_if(
      open_, [&](const auto& one) { return one.sent && one.token == answer.token && one.helper == from.id(); });
  if (request == open_.end()) return;  // it took too long
  const auto helper = fmt::format("{} at {}", from.peer().name, common_.config.compile_at);
  if (answer.status != TC_OK)
    end(request, helper,
        std::unexpected(Error{answer.status, fmt::format("{}, which says: {}; or build it without --no-object",
                                                         asked(helper), answer.message)}));
  else
    end(request, helper, answer.object);
}

void CompileRequests::on_link_lost(const Link& lost) {
  for (auto request = open_.begin(); request != open_.end();)
    if (request->helper != lost.id())
      ++request;
    else
      request = end(request, {},
                    fail(lost.reason().code, "{}, and lost it: {}; is a node serving there, with --compile-for?",
                         asked(common_.config.compile_at), lost.reason().message));
}

void CompileRequests::tick() {
  if (open_.empty()) return;
  const auto now = now_ns();
  for (auto request = open_.begin(); request != open_.end();)
    if (now < request->until_ns)
      ++request;
    else
      request = end(request, {},
                    fail(TC_ERR_TIMEOUT, "{}, and had no answer within {} ms (compile-limit)",
                         asked(common_.config.compile_at), common_.config.compile_limit_ms));
}

}  // namespace tc::node
