// SPDX-License-Identifier: Apache-2.0
//
// The importer's treatment of failures. When a language cannot go on, Rust panics, C asserts and aborts, C++ and Julia
// throw, everybody traps. At a target each of them would end the node, or be an undefined symbol. They are found by
// name, once everything that can be in line is, and become tc_fail() with a code of <threechains/ifunc.h>, a sentence,
// and the author's line.
//
// Threads: the one that owns the module.
#pragma once

#include "toolchain/importer.h"

namespace tc::toolchain {

// Before optimising: drops the bodies of functions that only end a program, because lower_failures() replaces the calls.
void forget_failure_bodies(llvm::Module& module);

// After optimising: whatever would end the process (a panic, a failed assertion, a trap, an exception that nothing can
// catch) becomes tc_fail() and a return from the entry. True when something changed.
bool lower_failures(llvm::Module& module, const std::vector<std::string>& entries);

// Can an exception pass through this code? It throws or catches some, or is C++ that was compiled for exceptions and
// calls what may throw. Call it before debug information is stripped, because that names the language.
bool unwinds(const llvm::Module& module);

// Drops what nothing can reach: where an exception that no handler takes would be thrown on, in code that such an exception
// never enters. It needs a function of libgcc_s, which an ifunc need not declare then.
void drop_unreachable_resumes(llvm::Module& module);

// An exception that leaves the entry has no handler above it and would end the node in std::terminate(). So the
// entry becomes a shell that catches everything and calls tc_fail(). Nothing changes where no exception can.
void catch_all_in(llvm::Module& module, const std::string& entry);

}  // namespace tc::toolchain
