// SPDX-License-Identifier: Apache-2.0
//
// For tests: memory for code that a node and a cell have at the same address, and ifuncs in it.
#pragma once

#include <string>

#include "base/fd.h"
#include "cell/cell_process.h"
#include "target/elf_image.h"
#include "wire/object_format.h"

namespace tc::cell::testing {

class CellCode {
 public:
  CellCode();
  ~CellCode();
  CellCode(const CellCode&) = delete;

  CellProcess::Half code() const { return {code_file_.get(), text_, half}; }
  CellProcess::Half data() const { return {data_file_.get(), text_ + half, half}; }

  // Links the ifunc TC_TEST_IFUNCS/NAME.ifunc with the addresses of that cell, and returns where its entry is.
  uint64_t load(const std::string& name, const CellProcess& cell);

 private:
  static constexpr size_t half = object_format::image_half;
  void apply(const target::ElfImage& image, size_t index, const CellProcess& cell);

  Fd code_file_, data_file_;
  std::byte* writable_ = nullptr;  // the text, for this process
  std::byte* text_ = nullptr;      // where it runs
  size_t used_ = 0;                // of both halves
};

}  // namespace tc::cell::testing
