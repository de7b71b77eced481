// SPDX-License-Identifier: Apache-2.0
#include "node/code_loader.h"

#include <fmt/ranges.h>
#include <spdlog/logger.h>

#include "node/code_shares.h"
#include "node/counters.h"
#include "node/known_code.h"
#include "node/liveness/watchdog.h"
#include "node/remote_compile/compile_requests.h"
#include "target/executor.h"

namespace tc::node {

target::Code* CodeLoader::find(const ContentId& id) const { return store_->find(id); }

LoadResult CodeLoader::load(Bundle bundle, const CodeSource& from, uint64_t waiter) {
  if (requests_.needs_helper(bundle)) return requests_.compile(std::move(bundle), from, waiter);
  auto loaded = load_here(std::move(bundle), from);
  if (!loaded) return LoadResult::failed(std::move(loaded).error());
  return LoadResult::loaded(**loaded);
}

Result<target::Code*> CodeLoader::load_here(Bundle bundle, const CodeSource& from, Bytes object) {
  const target::Executor::Pause pause(executor_);
  const bool is_new = store_->find(bundle.id()) == nullptr;
  if (is_new) TC_CHECK(CodeShares::fits(*from.rights, bundle));
  target::Sender sender(from.host);
  if (!from.rights->is_all())
    sender.may_export = [&rights = *from.rights](const std::string& symbol) { return rights.may_export(symbol); };
  TC_ASSIGN(auto* const code, store_->load(std::move(bundle), sender, std::move(object)));
  if (is_new) TC_CHECK(shares_.add(from.key, *from.rights, *code));
  if (const auto& manifest = code->bundle->manifest(); manifest.has(entry_library))
    log_.info("library '{}' ({}) from {} exports {}", code->name(), code->id().short_hex(),
              from.host.empty() ? "here" : from.host, fmt::join(manifest.exports, ", "));
  known_.loaded(*code);
  counters_.load_ns = code->load_ns;
  watchdog_.watch(*code);
  return code;
}

}  // namespace tc::node
