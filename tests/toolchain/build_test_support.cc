// SPDX-License-Identifier: Apache-2.0
#include "build_test_support.h"

#include <gtest/gtest.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Support/raw_ostream.h>

#include "base/file.h"
#include "toolchain/frontend.h"

namespace tc::toolchain {

Workshop::Workshop() : directory_(std::move(*TemporaryDirectory::create())) {
  request.include_directory = TC_INCLUDE_DIR;
  request.targets = {x86_64};
}

Workshop& Workshop::file(const std::string& name, const std::string& text) {
  const auto path = directory_.path() / name;
  EXPECT_TRUE(write_file_atomically(path, as_bytes(text)));
  if (request.inputs.empty() && language_of(path)) request.inputs = {path};
  return *this;
}

Bundle Workshop::bundle() const {
  auto built = build();
  if (!built) {
    ADD_FAILURE() << built.error().message;
    return {};
  }
  return std::move(built->bundle);
}

std::string Workshop::refusal() const {
  auto built = build();
  EXPECT_FALSE(built.has_value()) << "it was built";
  return built ? "" : built.error().message;
}

Workshop c_file(const std::string& name, const std::string& text) {
  Workshop shop;
  shop.file(name + ".c", "#include <threechains/ifunc.h>\n" + text);
  return shop;
}

size_t slice_of(const Bundle& bundle, SliceRole role, SliceForm form, const char* triple) {
  const auto found = bundle.find(role, form, *TargetTriple::parse(triple));
  EXPECT_TRUE(found.has_value()) << "no such slice";
  return found.value_or(0);
}

std::string ReadModule::text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (module) module->print(stream, nullptr);
  return text;
}

ReadModule read_module(const Bundle& bundle, SliceRole role, const char* triple) {
  ReadModule read;
  const auto bitcode = bundle.unpack(slice_of(bundle, role, SliceForm::bitcode, triple));
  if (!bitcode) {
    ADD_FAILURE() << bitcode.error().message;
    return read;
  }
  auto module =
      llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(as_text(*bitcode)), "slice"), *read.context);
  if (!module)
    ADD_FAILURE() << llvm::toString(module.takeError());
  else
    read.module = std::move(*module);
  return read;
}

}  // namespace tc::toolchain
