// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "node/node.h"

namespace tc::node {

Result<uint64_t> Node::stat(std::string_view name) const {
  const auto store = store_->stats();
  const std::map<std::string_view, uint64_t> numbers{
      {"executed", executor_.executed()},
      {"code-bytes", store.bytes},
      {"codes", store.codes},
      {"code-loads", store.loads},
      {"code-evictions", store.evictions},
      {"object-loads", store.object_loads},
      {"quick-compiles", store.quick_compiles},
      {"tuned", store.tuned_swaps},
      {"cache-hits", store.cache_hits},
      {"rebinds", store.rebinds},
      {"retired", store.retired},
      {"code-bytes-sent", counters_.code_bytes_sent},
      {"first-execution-ns", counters_.first_execution_ns},
      {"load-ns", counters_.load_ns},
      {"links", links_.size()},
      {"dropped-links", counters_.dropped_links},
      {"refused-strangers", counters_.refused_peers},
      {"late-answers", counters_.late_answers},
      {"needs", counters_.needs},
      {"slice-requests", counters_.slice_requests},
      {"compile-requests", counters_.compile_requests},
      {"compiled-for-others", counters_.compiled_for_others},
      {"failures", counters_.failures},
      {"stuck", reports_of_stuck_calls()},
  };
  if (const auto found = numbers.find(name); found != numbers.end()) return found->second;
  std::string names;
  for (const auto& [known, value] : numbers) names += (names.empty() ? "" : ", ") + std::string(known);
  return fail(TC_ERR_NOT_FOUND, "there is no number '{}'; there are: {}", name, names);
}

}  // namespace tc::node
