// SPDX-License-Identifier: Apache-2.0
//
// Code that was replaced: by tuned code, or because a library that it is linked to was. It stays until its last call has
// ended.
#include "target/store.h"

namespace tc::target {

void Store::adopt() {
  for (auto& [code, memory] : tuner_.finished()) {
    auto before = std::exchange(code->memory, CodeMemory{.image = {}, .jitted = std::move(memory)});
    if (code->variables.empty())
      put_aside(*code, std::move(before));
    else
      code->first = std::move(before);
    count(*code);
    ++stats_.tuned_swaps;
  }
}

// Code that any thread may run is kept for good when its executions are not counted.
void Store::put_aside(StoredCode& code, CodeMemory memory) {
  if (memory.bytes() == 0) return;
  if (code.counted.load(std::memory_order_relaxed)) return wait_for_leaving(std::move(memory));
  code.retired.push_back(std::move(memory));
  if (std::ranges::find(retiring_, &code) == retiring_.end()) retiring_.push_back(&code);
}

// Of code that is freed altogether. Where one thread runs everything, no call is inside it.
void Store::put_aside_all(StoredCode& code) {
  if (options_.executions == nullptr) return;
  for (auto& memory : code.retired) wait_for_leaving(std::move(memory));
  wait_for_leaving(std::move(code.memory));
  wait_for_leaving(std::move(code.first));
}

void Store::wait_for_leaving(CodeMemory memory) {
  if (memory.bytes() == 0) return;
  stats_.bytes += memory.bytes();
  outdated_.push_back(std::move(memory));
}

void Store::retire() {
  std::erase_if(retiring_, [this](StoredCode* code) {
    if (code->pinned) return false;
    code->retired.clear();
    count(*code);
    return true;
  });
  while (stats_.bytes > options_.budget_bytes) {
    StoredCode* const victim = queue_.least_recent(nullptr);
    if (victim == nullptr) return;  // all of them run: next time
    free(*victim);
  }
}

void Store::free_left() {
  auto& executions = *options_.executions;
  while (true) {
    if (executions.waiting()) {
      if (!executions.is_over()) return;
      for (const auto& memory : leaving_) stats_.bytes -= memory.bytes();
      leaving_.clear();
      executions.end();
    }
    if (outdated_.empty()) return;
    leaving_ = std::exchange(outdated_, {});
    executions.begin();
  }
}

}  // namespace tc::target
