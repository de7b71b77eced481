// SPDX-License-Identifier: Apache-2.0
//
// `ifunc build`: from a source file to a bundle. All steps in order; each is a file of its own.
//
// Thread: the program's only one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/bundle.h"

namespace tc::toolchain {

struct BuildRequest {
  std::vector<std::filesystem::path> inputs;  // one source file, or bitcode files: one for each triple
  std::string name;                           // empty: the first input's stem
  std::vector<std::string> targets;           // empty: default_targets(), or the bitcode files' own
  std::vector<std::string> externs;
  std::vector<std::filesystem::path> bundled;  // .ifunc files that are sent along, for tc_inject() and tc_forward_as()
  std::vector<std::string> clang_flags;
  std::filesystem::path include_directory;  // where <threechains/ifunc.h> is
  bool objects = true;
  bool bitcode = true;
  bool allow_asm = false;
  bool allow_ctors = false;
  bool library = false;                        // --library
  std::vector<std::filesystem::path> against;  // libraries whose exports it may use
};

struct BuildResult {
  Bundle bundle;
  std::vector<std::string> warnings;
};

std::vector<std::string> default_targets();

// The same request always gives the same bytes. Nothing is printed but by the compilers that it runs.
Result<BuildResult> build(const BuildRequest& request);

}  // namespace tc::toolchain
