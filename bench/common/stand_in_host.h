// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a node when an ifunc runs without one: it offers one block of data and keeps the answers.
// Thread: the one that measures.
#pragma once

#include <cstring>
#include <string>

#include "target/executor.h"

namespace tc::bench {

class StandInHost final : public target::IfuncHost {
 public:
  void expose(std::span<std::byte> data) noexcept { data_ = data; }

  void* data(std::string_view, size_t* size) noexcept override {
    *size = data_.size();
    return data_.data();
  }
  tc_status_t reply(ByteView bytes) noexcept override {
    if (bytes.size() == sizeof answer) std::memcpy(&answer, bytes.data(), bytes.size());
    return TC_OK;
  }
  tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_ERR_NOT_FOUND; }
  tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_ERR_NOT_FOUND; }
  tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_ERR_NOT_FOUND; }
  void fail(int32_t code, std::string_view message) noexcept override { failed = fmt::format("{} {}", code, message); }
  void log(int, std::string_view) noexcept override {}

  uint64_t answer = 0;  // the last one's bytes
  std::string failed;

 private:
  std::span<std::byte> data_;
};

}  // namespace tc::bench
