// SPDX-License-Identifier: Apache-2.0
//
// What a call needs of the place where it runs (call_places.h).
//
// Threads: any; a plain value.
#pragma once

namespace tc::node {

struct CallWish {
  bool concurrent = false;  // its code may run beside other code
  bool in_cell = false;     // it may not run in the node's process
};

}  // namespace tc::node
