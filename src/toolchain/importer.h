// SPDX-License-Identifier: Apache-2.0
//
// The importer, shared by all languages: makes bitcode independent of the machine that it was compiled on
// (docs/languages.md). importer.cc has the order of the steps and the optimiser between them; they are
//
//     importer_entries    what can be called from outside: entry points, a library's exports, constructors
//     importer_failures   whatever would end the process becomes tc_fail() and a return from the entry (importer_return)
//     importer_check      refuses what cannot travel
//     importer_strip      drops what belongs to one machine, or makes it into another's
//
// Threads: one thread owns a module and its context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/bundle.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace tc::toolchain {

struct ImportOptions {
  std::string name;   // of the ifunc: entry points are NAME_main, ...
  std::string label;  // of the file, for messages
  bool allow_asm = false;
  bool allow_ctors = false;
  bool library = false;  // what it defines may be used by other ifuncs; it need not have a NAME_main
  std::string retarget;  // the triple that the bitcode is to be made into; empty: its own
};

// A symbol that a slice uses and does not define, and one place that uses it.
struct Undefined {
  std::string symbol;
  std::string where;  // "foo.c:12", or the file alone when the bitcode has no positions
  bool is_call = true;
  bool is_weak = false;  // a target that does not have it takes null for it
};

// The code for one role, ready to be written.
struct ImportedSlice {
  std::unique_ptr<llvm::Module> module;
  std::vector<Undefined> undefined;  // sorted by symbol
  bool has_exceptions = false;       // needs unwind tables and a personality at run time
};

struct Imported {
  ImportedSlice target;
  ImportedSlice source;  // module is null when the file has no source-side functions
  uint8_t entries = 0;   // a set of Entry
  uint8_t alignment_log2 = 4;
  std::vector<std::string> exports;    // of a library, sorted
  std::vector<std::string> libraries;  // #pragma comment(lib, ...), as written
};

// Reads bitcode, of older LLVMs too, or LLVM's assembly. TC_ERR_MALFORMED when the bytes are neither.
Result<std::unique_ptr<llvm::Module>> parse(ByteView bitcode, llvm::LLVMContext& context, const std::string& label);

// Takes the module apart. TC_ERR_NOT_FOUND: no NAME_main. TC_ERR_INVALID: an entry of another type, or something
// that cannot travel; the message names file, symbol, reason and remedy.
Result<Imported> import_module(std::unique_ptr<llvm::Module> module, const ImportOptions& options);

}  // namespace tc::toolchain
