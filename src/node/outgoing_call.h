// SPDX-License-Identifier: Apache-2.0
//
// A call about to be sent, to a peer or to this node itself.
//
// Thread: the node's.
#pragma once

#include "source/code_table.h"
#include "wire/bundle.h"
#include "wire/chain.h"
#include "wire/frame.h"

namespace tc::target {
class Code;
}

namespace tc::node {

// All views are only needed during the send.
struct OutgoingCall {
  const Bundle* bundle = nullptr;
  const target::Code* code = nullptr;        // whose bundle it is, when it is that of code that this node holds
  uint32_t index = source::CodeTable::none;  // of a registered ifunc
  ByteView payload;
  const wire::CallHeader* header = nullptr;                   // null: no answer is wanted, and limits are the defaults
  const wire::PackedReturnAddress* return_address = nullptr;  // null: the answer comes back to this node
  const wire::SharedChain* chain = nullptr;                   // on whose behalf, where that is not this node's own
  bool with_code = false;                                     // even if the peer has it

  wire::SharedChain shared_chain() const noexcept { return chain != nullptr ? *chain : nullptr; }
};

}  // namespace tc::node
