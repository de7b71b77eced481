// SPDX-License-Identifier: Apache-2.0
//
// A call that was handed to another thread of its node, or to a cell, from then until its end is told.
//
// Thread: the node's makes and ends it. A worker's thread runs it: it reads everything but `hold` and `charge`, and writes
// the last part.
#pragma once

#include <memory>
#include <optional>

#include "node/link/link.h"
#include "node/named_data.h"

namespace tc::node {

struct HandedCall {
  target::Code* code = nullptr;
  uint64_t use = 0;                // CodeStore::begin_use()
  target::Call call;               // what its frame says
  trust::SharedRights rights;      // what the code may do in this call
  Bytes memory;                    // of the payload
  std::byte* payload = nullptr;    // aligned as the code wants it
  size_t size = 0;                 // of the payload
  Charge charge;                   // of that memory
  uint64_t since_ns = 0;           // when it came, or was taken in to wait for this
  std::optional<Link::Hold> hold;  // on the link that it came from; none: this node made the call

  bool in_cell = false;      // and on no thread of the node
  bool is_canceled = false;  // by its caller, while it ran in a cell
  bool is_put_back = false;  // as its first cell ended before the code was entered

  // Set by HandedCalls:
  std::shared_ptr<const NamedData> data;
  void* target_args = nullptr;
  bool is_counted = false;  // as executed

  // The worker's, until the node's thread is told that it has ended:
  target::Call outcome;  // a copy of `call` to begin with, with what the ifunc did in the end
  uint64_t took_ns = 0;
};

// The data that its target_args are, if others can have them; null: they are memory of this process alone, or there are none.
inline const std::shared_ptr<const ExposedData>& target_args_of(const HandedCall& handed) noexcept {
  return find_file_at(*handed.data, handed.target_args);
}

}  // namespace tc::node
