// SPDX-License-Identifier: Apache-2.0
//
// The importer, shared by all languages: makes bitcode fit to travel (docs/languages.md).
//
//     parse (upgrades older bitcode) -> entries: follow aliases, rename -> for each role: internalise the rest,
//     optimise up to where the target takes over -> check -> strip -> bitcode_writer
//
// Each step is a file of its own. Thread: one module and its context belong to one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/bundle.h"

namespace llvm {
class CallBase;
class GlobalValue;
class Instruction;
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

// TC_ERR_MALFORMED when these bytes are neither bitcode nor LLVM's assembly.
Result<std::unique_ptr<llvm::Module>> parse(ByteView bitcode, llvm::LLVMContext& context, const std::string& label);

// Takes the module apart. TC_ERR_NOT_FOUND: no NAME_main. TC_ERR_INVALID: an entry of another type, or something
// that cannot travel; the message names file, symbol, reason and remedy.
Result<Imported> import_module(std::unique_ptr<llvm::Module> module, const ImportOptions& options);

// ---- The steps --------------------------------------------------------------------------------------------

// importer_entries.cc: finds the entry points, gives them their fixed symbols, follows all aliases. Returns the
// set of Entry.
Result<uint8_t> settle_entries(llvm::Module& module, const ImportOptions& options);
// importer_library.cc: an entry that does nothing, when the library defines none.
void ensure_main(llvm::Module& module, const ImportOptions& options);
// importer_library.cc: may other ifuncs use what the library defines here?
bool is_for_others(const llvm::GlobalValue& value);
// importer_library.cc: what the module defines for others, sorted, once its entries are settled. TC_ERR_INVALID: nothing,
// or a name that every ifunc knows as something else.
Result<std::vector<std::string>> take_exports(llvm::Module& module, const ImportOptions& options);
// importer_entries.cc: takes TC_PAYLOAD_ALIGN's value out of the module. Log2; 4 when there is none.
Result<uint8_t> take_alignment(llvm::Module& module, const ImportOptions& options);
// importer_entries.cc: takes the names of #pragma comment(lib, ...) out of the module.
std::vector<std::string> take_libraries(llvm::Module& module);

// importer_ctors.cc: makes the entries run the static constructors, once, before anything else.
void construct_on_first_call(llvm::Module& module, const std::vector<std::string>& entries);

// importer_abi.cc: tells the optimiser that the ifunc ABI copies what it is given, and makes the crate's
// tc_algebraic_*() operations.
void describe_abi(llvm::Module& module);
// importer_reduce.cc: keeps `entries` and what they need, hides and optimises it.
void reduce_to(llvm::Module& module, const std::vector<std::string>& entries);
// importer_failures.cc: of the functions that only end a program, no bodies: lower_failures() replaces the calls.
void forget_failure_bodies(llvm::Module& module);
// importer_failures.cc, after optimising: whatever would end the process (a panic, a failed assertion, a trap, an
// exception that nothing can catch) becomes tc_fail() and a return from the entry. True when something changed.
bool lower_failures(llvm::Module& module, const std::vector<std::string>& entries);
// importer_return.cc: makes each of `calls`, which never return, say tc_fail(code, message) instead, and leave the
// entry that was called, through all functions in between.
struct Failure {
  llvm::CallBase* call;
  int32_t code;
  std::string message;
};
void leave_entries_at(llvm::Module& module, const std::vector<Failure>& failures,
                      const std::vector<std::string>& entries);
// importer_exceptions.cc: may an exception pass through this code? It throws or catches some, or is C++ that was compiled
// for exceptions and calls what may throw. Asked while debug information is there, which names the language.
bool unwinds(const llvm::Module& module);
// importer_exceptions.cc: an exception that leaves `entry` becomes tc_fail() as well. Nothing changes where none can.
void catch_all_in(llvm::Module& module, const std::string& entry);

// importer_variables.cc, once nothing is optimised any more: what can be written is found by its name from outside.
void name_variables(llvm::Module& module);

// importer_retarget.cc: the module for another triple. TC_ERR_INVALID: it says things that only its own CPU, or its
// own calling convention, can do; the message names them and where they stand.
Status retarget(llvm::Module& module, const std::string& triple, const std::string& label);

// importer_strip.cc: before optimising: what ties the code to one CPU, or keeps functions from being inlined.
void strip_cpu(llvm::Module& module);
// importer_strip.cc: after checking: everything that neither meaning nor speed at the target needs. Code that `unwinds`
// keeps what its frame tables are made from.
void strip_for_travel(llvm::Module& module, bool unwinds);

// importer_check.cc, before reducing, which forgets sections: refuses static constructors that an author put into a
// loader's list by hand.
Status check_sections(const llvm::Module& module, const ImportOptions& options);
// importer_check.cc: refuses what cannot travel.
Status check_can_travel(const llvm::Module& module, const ImportOptions& options);
// importer_check.cc: "foo.c:12": the author's line that this comes from, or `label` when the bitcode has no positions.
std::string position(const llvm::Instruction& at, const std::string& label);
// importer_check.cc: the same, but for code in a function of the language's library that is not in line, the only place
// where the author calls that function.
std::string position_of_author(const llvm::Instruction& at, const std::string& label);
// importer_check.cc: what the linker at the target will be asked for.
std::vector<Undefined> undefined_symbols(const llvm::Module& module, const std::string& label);

}  // namespace tc::toolchain
