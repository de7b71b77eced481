// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

std::vector<std::string> kept(uint8_t entries, SliceRole role, std::vector<std::string> exports = {}) {
  if (role == SliceRole::target) {
    exports.emplace_back(abi_names::main);
    return exports;
  }
  std::vector<std::string> names;
  if (entries & entry_payload_get_max_size) names.push_back(abi_names::payload_get_max_size);
  if (entries & entry_payload_bound) names.push_back(abi_names::payload_bound);
  if (entries & (entry_payload_init | entry_payload_init_2022)) names.push_back(abi_names::payload_init);
  return names;
}

Result<ImportedSlice> make_slice(std::unique_ptr<llvm::Module> module, const std::vector<std::string>& entries,
                                 const ImportOptions& options, SliceRole role) {
  if (options.allow_ctors) construct_on_first_call(*module, entries);
  // At the source there is nobody to tell: what ends a program there is refused as undefined, or ends it.
  if (role == SliceRole::target) forget_failure_bodies(*module);
  reduce_to(*module, entries);
  if (role == SliceRole::target) {
    if (lower_failures(*module, entries)) reduce_to(*module, entries);
    catch_all_in(*module, abi_names::main);
  }
  TC_CHECK(check_can_travel(*module, options));
  // Only now: what the entries do not reach may be tied to a CPU, and much that is goes away in optimising.
  if (!options.retarget.empty()) TC_CHECK(retarget(*module, options.retarget, options.label));
  // A library stays as it was linked first.
  if (role == SliceRole::target && !options.library) name_variables(*module);
  ImportedSlice slice;
  slice.undefined = undefined_symbols(*module, options.label);
  slice.has_exceptions = unwinds(*module);
  strip_for_travel(*module, slice.has_exceptions);
  slice.module = std::move(module);
  return slice;
}

}  // namespace

Result<std::unique_ptr<llvm::Module>> parse(ByteView bitcode, llvm::LLVMContext& context, const std::string& label) {
  llvm::SMDiagnostic diagnostic;
  const auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(as_text(bitcode)), label);
  auto module = llvm::parseIR(buffer->getMemBufferRef(), diagnostic, context);
  if (!module) return fail(TC_ERR_MALFORMED, "{}: LLVM cannot read it: {}", label, diagnostic.getMessage().str());
  std::string words;
  llvm::raw_string_ostream stream(words);
  bool broken_debug_info = false;
  if (llvm::verifyModule(*module, &stream, &broken_debug_info))
    return fail(TC_ERR_MALFORMED, "{}: LLVM finds the code broken: {}", label, words.substr(0, words.find('\n')));
  return module;
}

Result<Imported> import_module(std::unique_ptr<llvm::Module> module, const ImportOptions& options) {
  Imported imported;
  ensure_main(*module, options);
  TC_ASSIGN(imported.entries, settle_entries(*module, options));
  TC_ASSIGN(imported.exports, take_exports(*module, options));
  if (options.library) imported.entries |= entry_library;
  TC_ASSIGN(imported.alignment_log2, take_alignment(*module, options));
  imported.libraries = take_libraries(*module);
  TC_CHECK(check_sections(*module, options));
  strip_cpu(*module);
  describe_abi(*module);
  const auto source_entries = kept(imported.entries, SliceRole::source);
  if (!source_entries.empty()) {
    TC_ASSIGN(imported.source, make_slice(llvm::CloneModule(*module), source_entries, options, SliceRole::source));
  }
  TC_ASSIGN(imported.target, make_slice(std::move(module), kept(imported.entries, SliceRole::target, imported.exports),
                                        options, SliceRole::target));
  return imported;
}

}  // namespace tc::toolchain
