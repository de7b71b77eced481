// SPDX-License-Identifier: Apache-2.0
//
// What a running ifunc may ask of the node it runs on: the C++ face of <threechains/ifunc.h>. The node
// implements it; the ABI functions (abi.cc) reach it through the call in progress on this thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace tc::target {

class Code;

class IfuncHost {
 public:
  // Of the cluster, from 0, and how many there are: 0 and 1 outside of one.
  uint32_t node_id() const noexcept { return node_id_; }
  uint32_t node_count() const noexcept { return node_count_; }
  // Named data that the application exposed; null when there is none.
  virtual void* data(std::string_view name, size_t* size) noexcept = 0;
  // These return TC_OK or what went wrong; the bytes are copied before they return.
  virtual tc_status_t reply(ByteView bytes) noexcept = 0;
  virtual tc_status_t forward(uint32_t node, ByteView payload) noexcept = 0;
  virtual tc_status_t forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept = 0;
  virtual tc_status_t inject(uint32_t node, std::string_view name, ByteView payload) noexcept = 0;
  virtual void fail(int32_t code, std::string_view message) noexcept = 0;
  virtual void log(int level, std::string_view message) noexcept = 0;

 protected:
  ~IfuncHost() = default;
  void be_node(uint32_t id, uint32_t count) noexcept {
    node_id_ = id;
    node_count_ = count;
  }

 private:
  uint32_t node_id_ = 0, node_count_ = 1;
};

// The host of the ifunc that runs on this thread; null when none does. Set by the executor around a run of
// frames, which is what lets two nodes live in one process.
// (The model of access says that it is in the block that every thread gets at its start: one instruction to reach.)
extern constinit thread_local IfuncHost* current_host [[gnu::tls_model("initial-exec")]];

// Whether the call on this thread is on its way out: it has failed, and each of its functions returns at once (docs/languages.md,
// "When code fails"). Injected code sets and reads the byte through tc_leaving(); it starts each call by clearing it. Whoever
// runs a call inside of another one clears it after a call that failed.
extern constinit thread_local uint8_t leaving [[gnu::tls_model("initial-exec")]];
extern "C" uint8_t* tc_leaving(void);

// The ABI functions by name, for the linker: what every ifunc may call. Null for any other name.
void* abi_symbol(std::string_view name) noexcept;

}  // namespace tc::target
