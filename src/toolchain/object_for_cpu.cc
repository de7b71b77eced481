// SPDX-License-Identifier: Apache-2.0
#include "toolchain/object_for_cpu.h"

#include <llvm/MC/MCSubtargetInfo.h>

#include <algorithm>

#include "target/jit/compiler.h"
#include "toolchain/codegen.h"
#include "toolchain/link.h"

namespace tc::toolchain {

namespace {

using target::Effort;
using target::jit::Compiler;
using target::jit::Host;

// LLVM prints a warning about a feature that it does not know, and goes on without it.
Status check_features(const TargetTriple& triple, const std::string& features) {
  TC_ASSIGN(const auto generic, Host::named(triple.text, "", ""));
  TC_ASSIGN(const auto machine, generic.machine(Effort::tuned));
  const auto known = machine->getMCSubtargetInfo()->getAllProcessorFeatures();
  for (size_t at = 0; at < features.size();) {
    const auto end = std::min(features.find(',', at), features.size());
    const auto one = features.substr(at, end - at);
    at = end + 1;
    const bool is_known = one.size() > 1 && (one[0] == '+' || one[0] == '-') &&
                          std::ranges::any_of(known, [&](const auto& feature) { return one.substr(1) == feature.Key; });
    if (!is_known) return fail(TC_ERR_INVALID, "LLVM knows no feature '{}' of {}", one, triple.text);
  }
  return {};
}

}  // namespace

Result<Bytes> object_for_cpu(ByteView bitcode, const std::string& text, const std::string& cpu,
                             const std::string& features, const std::string& label) {
  initialize_targets();
  TC_CHECK(check_triple(text));
  TC_ASSIGN(const auto triple, TargetTriple::parse(text));
  TC_CHECK(check_features(triple, features));
  TC_ASSIGN(const auto host, Host::named(triple.text, cpu, features));
  Compiler compiler(host, Effort::tuned);
  TC_ASSIGN(const auto object, compiler.compile(bitcode, label));
  TC_ASSIGN(auto slice, link_object(object, triple, label));
  return std::move(slice.bytes);
}

}  // namespace tc::toolchain
