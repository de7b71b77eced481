// SPDX-License-Identifier: Apache-2.0
//
// Counts bitcode at which LLVM gave up, for each sender. LLVM cannot be tidied up then, so each time costs memory for good
// (jit/llvm_errors.h). An honest sender meets it with what one kind of CPU lacks; a sender with more than a few is compiled for
// no longer.
//
// Threads: any.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/result.h"

namespace tc::target {

class FatalBitcode {
 public:
  static constexpr unsigned most = 16;  // some 20 MB of memory
  // So many senders are told apart. Those that come later count as one.
  static constexpr size_t most_senders = 1024;

  // `sender`: its name for messages. Connections that differ by their ports alone are one. Empty: this node itself, whose
  // bitcode is not counted.
  void count(const std::string& sender);
  // TC_ERR_LIMIT: nothing of that sender is compiled any more.
  Status check(const std::string& sender) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, unsigned, std::less<>> counts_;
};

}  // namespace tc::target
