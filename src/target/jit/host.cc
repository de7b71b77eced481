// SPDX-License-Identifier: Apache-2.0
#include "target/jit/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <vector>

namespace tc::target::jit {

namespace {

// By name, not by LLVM's "native target" helper: that one is fixed where LLVM's headers were generated, which is
// another machine when this is cross-compiled.
void initialize_code_generator() {
#if defined(__x86_64__)
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmParser();
  LLVMInitializeX86AsmPrinter();
#elif defined(__aarch64__)
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmParser();
  LLVMInitializeAArch64AsmPrinter();
#elif defined(__riscv) && __riscv_xlen == 64
  LLVMInitializeRISCVTargetInfo();
  LLVMInitializeRISCVTarget();
  LLVMInitializeRISCVTargetMC();
  LLVMInitializeRISCVAsmParser();
  LLVMInitializeRISCVAsmPrinter();
#else
#error "no code generator is known for this architecture"
#endif
}

std::string host_triple() {
#if defined(__x86_64__)
  return "x86_64-unknown-linux-gnu";
#elif defined(__aarch64__)
  return "aarch64-unknown-linux-gnu";
#else
  return "riscv64-unknown-linux-gnu";
#endif
}

// The calling convention needs these; bitcode comes without them (stripping attributes drops `+d`).
std::vector<std::string> abi_features(const llvm::Triple& triple) {
  if (triple.isRISCV64()) return {"+m", "+a", "+f", "+d", "+c"};
  if (triple.isLoongArch64()) return {"+f", "+d"};
  return {};
}

const char* abi_name(const llvm::Triple& triple) { return triple.isRISCV64() || triple.isLoongArch64() ? "lp64d" : ""; }

// On most of Intel's CPUs LLVM prefers 256 bits where there are 512, for the sake of code around the loops. Injected
// functions are the loops: 81 against 50 GFLOP/s there. Elsewhere it is the default anyway.
const char* preferred_width(bool has_avx512) { return has_avx512 ? "512" : ""; }

std::string join_features(const llvm::StringMap<bool>& found, const llvm::Triple& triple) {
  auto features = abi_features(triple);
  for (const auto& feature : found)
    features.push_back(fmt::format("{}{}", feature.second ? '+' : '-', feature.first().str()));
  std::sort(features.begin(), features.end());
  std::string joined;
  for (const auto& feature : features) {
    if (!joined.empty()) joined += ',';
    joined += feature;
  }
  return joined;
}

}  // namespace

Result<Host> Host::detect() {
  initialize_code_generator();
  Host host;
  host.triple = host_triple();
  host.cpu = llvm::sys::getHostCPUName().str();
  const auto found = llvm::sys::getHostCPUFeatures();
  host.features = join_features(found, llvm::Triple(host.triple));
  host.vector_width = preferred_width(found.lookup("avx512f"));
  std::string error;
  if (!llvm::TargetRegistry::lookupTarget(llvm::Triple(host.triple), error))
    return fail(TC_ERR_UNSUPPORTED, "LLVM cannot generate code for {}: {}", host.triple, error);
  return host;
}

Result<Host> Host::named(const std::string& triple, const std::string& cpu, const std::string& features) {
  const llvm::Triple wanted(llvm::Triple::normalize(triple));
  Host host{.triple = wanted.str(),
            .cpu = cpu,
            .features = fmt::format("{}", fmt::join(abi_features(wanted), ",")),
            .vector_width = {}};
  if (!features.empty()) host.features += (host.features.empty() ? "" : ",") + features;
  // LLVM prints its own words about a CPU that it does not know, and goes on with another: so that one is asked
  // through a machine for no CPU in particular.
  Host generic = host;
  generic.cpu = "";
  TC_ASSIGN(const auto any, generic.machine(Effort::tuned));
  if (!cpu.empty() && !any->getMCSubtargetInfo()->isCPUStringValid(cpu))
    return fail(TC_ERR_INVALID, "LLVM knows no CPU '{}' for {}", cpu, wanted.getArchName().str());
  TC_ASSIGN(const auto machine, host.machine(Effort::tuned));
  if (wanted.isX86()) host.vector_width = preferred_width(machine->getMCSubtargetInfo()->checkFeatures("+avx512f"));
  return host;
}

Result<std::unique_ptr<llvm::TargetMachine>> Host::machine(Effort effort) const {
  const llvm::Triple wanted(triple);
  std::string error;
  const auto* target = llvm::TargetRegistry::lookupTarget(wanted, error);
  if (!target) return fail(TC_ERR_UNSUPPORTED, "LLVM cannot generate code for {}: {}", triple, error);
  llvm::TargetOptions options;
  options.UseInitArray = true;
  options.MCOptions.ABIName = abi_name(wanted);
  const auto level = effort == Effort::baseline ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      wanted, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/false));
  if (!machine) return fail(TC_ERR_UNSUPPORTED, "LLVM has no code generator for {} {}", triple, cpu);
  if (effort == Effort::baseline) {
    machine->setFastISel(true);
    machine->setO0WantsFastISel(true);
    machine->setGlobalISel(false);  // aarch64's default at this level, and slower
  }
  return machine;
}

}  // namespace tc::target::jit
