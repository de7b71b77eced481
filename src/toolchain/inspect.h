// SPDX-License-Identifier: Apache-2.0
//
// `ifunc inspect`: what a bundle holds, for people and for programs. Knows no LLVM, so that any command can link it.
//
// Thread: any.
#pragma once

#include <string>

#include "wire/bundle.h"

namespace tc::toolchain {

// Some lines of text, the last one ended.
std::string describe(const Bundle& bundle);
// One JSON object, indented.
std::string describe_json(const Bundle& bundle);

}  // namespace tc::toolchain
