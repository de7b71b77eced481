// SPDX-License-Identifier: Apache-2.0
//
// What stands in front of a call's payload, for frames that are not run: whose call it was is told to others.
//
// Thread: any.
#pragma once

#include <optional>

#include "wire/frame.h"

namespace tc::node {

struct CallFront {
  std::optional<wire::CallHeader> header;             // none: nobody waits for an answer, or the frame is no whole call
  std::optional<wire::ReturnAddress> return_address;  // none: the peer that sent the frame is the caller
};

// `body` may be memory that its sender still writes to.
CallFront read_call_front(const wire::Header& frame, ByteView body);

}  // namespace tc::node
