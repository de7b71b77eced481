// SPDX-License-Identifier: Apache-2.0
#include "node/code_loader.h"

#include "node/node.h"

namespace tc::node {

LoadResult CodeLoader::load(Bundle bundle, std::string_view from, uint64_t waiter) {
  if (requests_.needs_helper(bundle)) return requests_.compile(std::move(bundle), from, waiter);
  auto loaded = node_.load(std::move(bundle), from);
  if (!loaded) return LoadResult::failed(std::move(loaded).error());
  return LoadResult::loaded(**loaded);
}

}  // namespace tc::node
