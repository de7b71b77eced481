// SPDX-License-Identifier: Apache-2.0
#include "node/code/code_loader.h"

#include <spdlog/logger.h>
#include <threechains/version.h>

#include <algorithm>
#include <utility>

#include "node/code/slices.h"
#include "node/config.h"
#include "node/links.h"
#include "node/local_calls.h"

namespace tc::node {

namespace {
// The helper keeps the limit itself, and its message says more.
constexpr uint64_t grace_ns = 1'000'000'000;
// Ifuncs that wait at a time, which bounds the bundles that are kept for them.
constexpr size_t open_limit = 64;
// How long a failure answers the same request again, so that a burst of calls makes one request.
constexpr uint64_t failure_ns = 1'000'000'000;
constexpr size_t failures_limit = 256;
}  // namespace

const target::Cpu& CodeLoader::cpu() {
  if (cpu_.name.empty()) cpu_ = target::host_cpu();
  return cpu_;
}

std::string CodeLoader::asked(std::string_view helper) {
  return fmt::format(
      "it holds only bitcode for this node, which has no LLVM and asked {} to compile it for {} ({}{}{})", helper,
      common_.config.code.triple.text, cpu().name, cpu().features.empty() ? "" : " ", cpu().features);
}

LoadResult CodeLoader::load(Bundle bundle, const CodeOrigin& from, uint64_t waiter) {
  const bool needs_helper =
      !common_.config.compile_at.empty() && codes_.find(bundle.id()) == nullptr && codes_.store().lacks_object(bundle);
  if (needs_helper) return compile(std::move(bundle), from, waiter);
  auto loaded = codes_.load(std::move(bundle), from);
  if (!loaded) return LoadResult::failed(std::move(loaded).error());
  return LoadResult::loaded(**loaded);
}

LoadResult CodeLoader::compile(Bundle bundle, const CodeOrigin& from, uint64_t waiter) {
  const auto id = bundle.id();
  for (auto& request : open_)
    if (request.bundle.id() == id) {
      if (std::ranges::find(request.waiters, waiter) == request.waiters.end()) request.waiters.push_back(waiter);
      return LoadResult::pending();
    }
  if (const auto failure = failures_.find(id); failure != failures_.end()) {
    if (now_ns() < failure->second.until_ns) return LoadResult::failed_for_now(failure->second.error);
    failures_.erase(failure);
  }
  const auto cached = load_cached(bundle, from);
  if (!cached) return LoadResult::failed(cached.error());
  if (*cached != nullptr) return LoadResult::loaded(**cached);
  const auto name = bundle.manifest().name;
  if (const auto sent = ask(std::move(bundle), from, waiter); !sent)
    return LoadResult::failed_for_now(remember(id, name, sent.error()));
  return LoadResult::pending();
}

// ---- Objects on disk

target::DiskCache* CodeLoader::cache() {
  const auto& directory = common_.config.code.cache_dir;
  if (std::exchange(cache_tried_, true) || directory.empty()) return cache_.get();
  auto opened = target::DiskCache::open(directory);
  if (opened)
    cache_ = std::move(*opened);
  else
    common_.log.warn("objects that others compile are not kept in '{}': {}", directory, opened.error().message);
  return cache_.get();
}

std::string CodeLoader::cache_key(const Bundle& bundle) {
  // The version is part of the key: after an upgrade, the helper has most likely been upgraded too, so its object is requested
  // again.
  return fmt::format("compiled elsewhere {}.{}.{} {} {} {} {}", TC_VERSION_MAJOR, TC_VERSION_MINOR, TC_VERSION_PATCH,
                     bundle.id().hex(), common_.config.code.triple.text, cpu().name, cpu().features);
}

// Null when there is none.
Result<target::Code*> CodeLoader::load_cached(const Bundle& bundle, const CodeOrigin& from) {
  if (cache() == nullptr) return nullptr;
  auto object = cache_->find(cache_key(bundle));
  if (!object) return nullptr;
  auto loaded = codes_.load(bundle, from, std::move(*object));
  // A missing symbol, or one that is forbidden, says nothing against the object.
  if (loaded || loaded.error().code != TC_ERR_MALFORMED) return loaded;
  cache_->remove(cache_key(bundle));
  return nullptr;
}

// ---- Requests

Result<Link*> CodeLoader::helper() {
  if (auto* const known = links_.with_id(helper_)) return known;
  TC_ASSIGN(auto* const link, links_.find_or_reach(common_.config.compile_at));
  helper_ = link->id();
  return link;
}

Status CodeLoader::ask(Bundle bundle, const CodeOrigin& from, uint64_t waiter) {
  if (open_.size() >= open_limit)
    return fail(TC_ERR_BUSY, "{} ifuncs wait to be compiled at {} already, and at most {} may", open_.size(),
                common_.config.compile_at, open_limit);
  auto link = helper();
  if (!link) return context(asked(common_.config.compile_at), std::move(link).error());
  const auto limit_ns = uint64_t{common_.config.compile_limit_ms} * 1'000'000;
  open_.push_back({++tokens_, (*link)->id(), false, now_ns() + limit_ns + grace_ns, std::move(bundle), from, {waiter}});
  ++common_.counters.compile_requests;
  if ((*link)->is_ready()) send(**link, open_.back());
  return {};
}

void CodeLoader::send(Link& link, Request& request) {
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

void CodeLoader::on_link_ready(Link& link) {
  for (auto& request : open_)
    if (request.helper == link.id() && !request.sent) send(link, request);
}

// ---- How they end

const Error& CodeLoader::remember(const ContentId& id, const std::string& name, const Error& error) {
  if (failures_.size() >= failures_limit) failures_.clear();
  const Error told{error.code, fmt::format("ifunc '{}': {}", name, error.message)};
  common_.log.warn("{}", told.message);
  return failures_.insert_or_assign(id, Failure{told, now_ns() + failure_ns}).first->second.error;
}

std::deque<CodeLoader::Request>::iterator CodeLoader::end(std::deque<Request>::iterator request, const Error* error) {
  if (error != nullptr) (void)remember(request->bundle.id(), request->bundle.manifest().name, *error);
  ended_.insert(ended_.end(), request->waiters.begin(), request->waiters.end());
  common_.work.backlog = true;
  return open_.erase(request);
}

void CodeLoader::on_answer(const Link& from, const wire::CompileAnswer& answer) {
  const auto request = std::ranges::find_if(
      open_, [&](const auto& one) { return one.sent && one.token == answer.token && one.helper == from.id(); });
  if (request == open_.end()) return;  // it took too long
  const auto helper = fmt::format("{} at {}", from.peer().name, common_.config.compile_at);
  if (answer.status != TC_OK) {
    const Error error{answer.status, fmt::format("{}, which says: {}; or build it without --no-object", asked(helper),
                                                 answer.message)};
    end(request, &error);
    return;
  }
  auto loaded = codes_.load(request->bundle, request->from, Bytes(answer.object.begin(), answer.object.end()));
  if (!loaded) {
    const Error error{loaded.error().code,
                      fmt::format("the object that {} compiled of it: {}", helper, loaded.error().message)};
    end(request, &error);
    return;
  }
  if (cache() != nullptr)
    if (const auto kept = cache_->store(cache_key(request->bundle), answer.object); !kept)
      common_.log.warn("the object of ifunc '{}' is not kept on disk: {}", (*loaded)->name(), kept.error().message);
  for (const auto waiter : request->waiters)
    if (auto* const link = links_.with_id(waiter)) slices_.record_supplier(request->bundle.id(), link->id());
  end(request, nullptr);
}

void CodeLoader::on_link_lost(const Link& lost) {
  for (auto request = open_.begin(); request != open_.end();) {
    if (request->helper != lost.id()) {
      ++request;
      continue;
    }
    const Error error{lost.reason().code,
                      fmt::format("{}, and lost it: {}; is a node serving there, with --compile-for?",
                                  asked(common_.config.compile_at), lost.reason().message)};
    request = end(request, &error);
  }
}

void CodeLoader::tick() {
  if (open_.empty()) return;
  const auto now = now_ns();
  for (auto request = open_.begin(); request != open_.end();) {
    if (now < request->until_ns) {
      ++request;
      continue;
    }
    const Error error{TC_ERR_TIMEOUT, fmt::format("{}, and had no answer within {} ms (compile-limit)",
                                                  asked(common_.config.compile_at), common_.config.compile_limit_ms)};
    request = end(request, &error);
  }
}

bool CodeLoader::deliver() {
  const auto ended = std::exchange(ended_, {});
  for (const auto waiter : ended) {
    if (waiter == CodeLoader::this_node)
      local_calls_.on_compiled();
    else if (auto* const link = links_.with_id(waiter))
      link->on_compiled();
  }
  return !ended.empty();
}

}  // namespace tc::node
