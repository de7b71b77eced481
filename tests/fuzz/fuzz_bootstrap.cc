// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a node's file in a rendezvous directory: refused, or a record that writing gives again.
#include <cstdint>
#include <cstdlib>

#include "node/bootstrap/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tc::node::bootstrap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto record = decode(text);
  if (!record) return 0;
  if (record->id >= record->count || record->address.empty()) std::abort();
  const auto again = decode(encode(*record));
  if (!again || again->id != record->id || again->count != record->count || again->address != record->address ||
      again->host != record->host || again->informed != record->informed || again->key != record->key)
    std::abort();
  return 0;
}
