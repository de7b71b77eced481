// SPDX-License-Identifier: Apache-2.0
#include "node/code/code_loader.h"

#include <spdlog/logger.h>
#include <threechains/version.h>

#include <algorithm>
#include <utility>

#include "base/log_format.h"
#include "node/call_log.h"
#include "node/code/slices.h"
#include "node/config.h"
#include "node/links.h"
#include "node/local_calls.h"

namespace tc::node {

namespace {
// How long a failure answers the same request again, so that a burst of calls makes one request.
constexpr uint64_t failure_ns = 1'000'000'000;
constexpr size_t failures_limit = 256;
}  // namespace

CodeLoader::CodeLoader(const Common& common, Codes& codes, SliceRequests& slices, Links& links, LocalCalls& local_calls)
    : common_(common),
      codes_(codes),
      slices_(slices),
      links_(links),
      local_calls_(local_calls),
      requests_(common, links, [this](const Bundle& bundle, std::string_view helper, const Result<ByteView>& object) {
        on_request_end(bundle, helper, object);
      }) {}

LoadResult CodeLoader::load(Bundle bundle, const CodeOrigin& from, uint64_t waiter) {
  const bool needs_helper =
      !common_.config.compile_at.empty() && codes_.find(bundle.id()) == nullptr && codes_.store().lacks_object(bundle);
  if (needs_helper) return load_compiled(std::move(bundle), from, waiter);
  auto loaded = codes_.load(std::move(bundle), from);
  if (!loaded) return LoadResult::failed(std::move(loaded).error());
  return LoadResult::loaded(**loaded);
}

LoadResult CodeLoader::load_compiled(Bundle bundle, const CodeOrigin& from, uint64_t waiter) {
  const auto id = bundle.id();
  if (const auto found = waiting_.find(id); found != waiting_.end()) {
    auto& waiters = found->second.waiters;
    if (std::ranges::find(waiters, waiter) == waiters.end()) waiters.push_back(waiter);
    return LoadResult::pending();
  }
  if (const auto failure = failures_.find(id); failure != failures_.end()) {
    if (now_ns() < failure->second.until_ns) return LoadResult::failed_for_now(failure->second.error);
    failures_.erase(failure);
  }
  const auto cached = load_cached(bundle, from);
  if (!cached) return LoadResult::failed(cached.error());
  if (*cached != nullptr) return LoadResult::loaded(**cached);
  if (const auto sent = requests_.ask(bundle); !sent) return LoadResult::failed_for_now(remember(bundle, sent.error()));
  waiting_.emplace(id, Waiting{from, {waiter}});
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
                     bundle.id().hex(), common_.config.code.triple.text, requests_.cpu().name,
                     requests_.cpu().features);
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

// ---- When the helper has answered, or cannot

const Error& CodeLoader::remember(const Bundle& bundle, const Error& error) {
  if (failures_.size() >= failures_limit) failures_.clear();
  const Error told{error.code, fmt::format("ifunc '{}': {}", bundle.manifest().name, error.message)};
  const LogContext about({.ifunc = bundle.manifest().name, .content_id = &bundle.id()});
  common_.call_log.warn("ifuncs that could not be compiled", told.message);
  return failures_.insert_or_assign(bundle.id(), Failure{told, now_ns() + failure_ns}).first->second.error;
}

void CodeLoader::on_request_end(const Bundle& bundle, std::string_view helper, const Result<ByteView>& object) {
  const auto found = waiting_.find(bundle.id());
  if (found == waiting_.end()) return;
  const auto& waiting = found->second;
  const auto loaded = object ? load_object(bundle, helper, *object, waiting) : fail(object.error());
  if (!loaded) (void)remember(bundle, loaded.error());
  ended_.insert(ended_.end(), waiting.waiters.begin(), waiting.waiters.end());
  common_.work.backlog = true;
  waiting_.erase(found);
}

Status CodeLoader::load_object(const Bundle& bundle, std::string_view helper, ByteView object, const Waiting& waiting) {
  auto loaded = codes_.load(bundle, waiting.from, Bytes(object.begin(), object.end()));
  if (!loaded) return context(fmt::format("the object that {} compiled of it", helper), std::move(loaded).error());
  if (cache() != nullptr)
    if (const auto kept = cache_->store(cache_key(bundle), object); !kept)
      common_.log.warn("the object of ifunc '{}' is not kept on disk: {}", (*loaded)->name(), kept.error().message);
  for (const auto waiter : waiting.waiters)
    if (auto* const link = links_.with_id(waiter)) slices_.record_supplier(bundle.id(), link->id());
  return {};
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
