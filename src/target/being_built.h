// SPDX-License-Identifier: Apache-2.0
//
// Whose code a thread has LLVM compile or link, for the last words of a process that LLVM itself ends.
//
// Threads: any; each sees its own.
#pragma once

#include <string_view>
#include <utility>

#include "base/content_id.h"

namespace tc::target {

class IfuncHost;

class BeingBuilt {
 public:
  // All that is given must outlive the object. `node`: whose last words tell it; null: nobody's do. `sender`: for messages;
  // empty: not known.
  BeingBuilt(const IfuncHost* node, std::string_view name, const ContentId& id, std::string_view sender) noexcept
      : node(node), name(name), id(id), sender(sender), before_(std::exchange(current_, this)) {}
  ~BeingBuilt() { current_ = before_; }
  BeingBuilt(const BeingBuilt&) = delete;
  BeingBuilt& operator=(const BeingBuilt&) = delete;

  // Null: nothing is.
  static const BeingBuilt* on_this_thread() noexcept { return current_; }

  const IfuncHost* const node;
  const std::string_view name;
  const ContentId& id;
  const std::string_view sender;

 private:
  const BeingBuilt* const before_;
  static constinit thread_local const BeingBuilt* current_ [[gnu::tls_model("initial-exec")]];
};

}  // namespace tc::target
