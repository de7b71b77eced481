// SPDX-License-Identifier: Apache-2.0
//
// What this processor can do, without LLVM but in its words: for a node that has its code compiled elsewhere.
#pragma once

#include <string>

namespace tc::target {

struct Cpu {
  std::string name;      // "x86-64-v3"; a level that every LLVM knows, not a product
  std::string features;  // what is there beyond that: "+lse,+sve"
};

// Of the processor that this runs on, as far as the operating system lets programs use it. Any thread.
Cpu host_cpu();

}  // namespace tc::target
