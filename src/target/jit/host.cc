// SPDX-License-Identifier: Apache-2.0
#include "target/jit/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <vector>

#include "target/jit/without_files.h"

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

// Triples are compared by what matters to machine code. An empty one (some front ends leave it out) fits.
Status check_triple(const llvm::Triple& module, const llvm::Triple& host) {
  if (module.getArch() == llvm::Triple::UnknownArch && module.str().empty()) return {};
  if (module.getArch() != host.getArch())
    return fail(TC_ERR_COMPILE, "bitcode is for {} when this node is {}", module.getArchName().str(),
                host.getArchName().str());
  if (module.getOS() != llvm::Triple::UnknownOS && !module.isOSLinux())
    return fail(TC_ERR_COMPILE, "bitcode is for {} when this node runs {}", module.getOSName().str(),
                host.getOSName().str());
  return {};
}

// The layout's text differs between front ends and their versions (Julia adds address spaces of its own) where the
// layout in memory does not; what could differ in memory is compared.
Status check_layout(const llvm::Module& module, const llvm::DataLayout& host) {
  const auto& layout = module.getDataLayout();
  if (module.getDataLayoutStr().empty()) return {};
  if (layout.isLittleEndian() != host.isLittleEndian())
    return fail(TC_ERR_COMPILE, "bitcode is {}-endian when this node is {}-endian",
                layout.isLittleEndian() ? "little" : "big", host.isLittleEndian() ? "little" : "big");
  if (layout.getPointerSizeInBits() != host.getPointerSizeInBits())
    return fail(TC_ERR_COMPILE, "bitcode has {}-bit pointers when this node has {}-bit ones",
                layout.getPointerSizeInBits(), host.getPointerSizeInBits());
  auto& context = module.getContext();
  for (auto* type : {static_cast<llvm::Type*>(llvm::Type::getInt64Ty(context)), llvm::Type::getDoubleTy(context),
                     static_cast<llvm::Type*>(llvm::Type::getInt128Ty(context))}) {
    const auto theirs = layout.getABITypeAlign(type).value();
    const auto ours = host.getABITypeAlign(type).value();
    if (theirs != ours)
      return fail(TC_ERR_COMPILE, "bitcode aligns {}-bit values to {} bytes when this node aligns them to {}",
                  host.getTypeSizeInBits(type).getFixedValue(), theirs, ours);
  }
  return {};
}

// Sections that a linker, an unwinder or a debugger reads as more than bytes. Compilers write them by themselves; a variable that
// stands there is meant to be believed.
Status check_section(const llvm::GlobalObject& object) {
  for (const llvm::StringRef reserved :
       {".eh_frame", ".gcc_except_table", ".debug", ".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors"})
    if (object.getSection().starts_with(reserved))
      return fail(TC_ERR_COMPILE, "'{}' stands in the section {}, which is for compilers alone", object.getName().str(),
                  object.getSection().str());
  return {};
}

Status check_globals(const llvm::Module& module) {
  for (const auto& object : module.global_objects()) TC_CHECK(check_section(object));
  for (const auto& variable : module.globals()) {
    if (variable.isThreadLocal())
      return fail(TC_ERR_COMPILE, "variable {} is thread-local, which injected code may not be",
                  variable.getName().str());
    const auto name = variable.getName();
    if ((name == "llvm.global_ctors" || name == "llvm.global_dtors") && variable.hasInitializer() &&
        !variable.getInitializer()->isNullValue())
      return fail(TC_ERR_COMPILE, "bitcode has static {}, which a node never runs: initialise in the entry instead",
                  name == "llvm.global_ctors" ? "constructors" : "destructors");
  }
  return {};
}

void set_host_cpu(llvm::Function& function, const Host& host) {
  function.removeFnAttr("tune-cpu");
  // Each combination of these attributes makes LLVM set up a description of the CPU of its own (1 ms, 800 KiB). This
  // one only matters where wide vectors are to be avoided.
  function.removeFnAttr("min-legal-vector-width");
  function.addFnAttr("target-cpu", host.cpu);
  function.addFnAttr("target-features", host.features);
  if (!host.vector_width.empty()) function.addFnAttr("prefer-vector-width", host.vector_width);
}

Result<std::shared_ptr<const llvm::Target>> generator_for(const std::string& triple) {
  std::string error;
  const auto* const target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  if (target == nullptr) return fail(TC_ERR_UNSUPPORTED, "LLVM cannot generate code for {}: {}", triple, error);
  return std::make_shared<const llvm::Target>(without_files(*target));
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
  TC_ASSIGN(host.generator, generator_for(host.triple));
  return host;
}

Result<Host> Host::named(const std::string& triple, const std::string& cpu, const std::string& features) {
  const llvm::Triple wanted(llvm::Triple::normalize(triple));
  Host host{.triple = wanted.str(),
            .cpu = cpu,
            .features = fmt::format("{}", fmt::join(abi_features(wanted), ",")),
            .vector_width = {},
            .generator = nullptr};
  TC_ASSIGN(host.generator, generator_for(host.triple));
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
  llvm::TargetOptions options;
  options.UseInitArray = true;
  options.MCOptions.ABIName = abi_name(wanted);
  const auto level = effort == Effort::baseline ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive;
  std::unique_ptr<llvm::TargetMachine> machine(generator->createTargetMachine(
      wanted, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/false));
  if (!machine) return fail(TC_ERR_UNSUPPORTED, "LLVM has no code generator for {} {}", triple, cpu);
  if (effort == Effort::baseline) {
    machine->setFastISel(true);
    machine->setO0WantsFastISel(true);
    machine->setGlobalISel(false);  // aarch64's default at this level, and slower
  }
  return machine;
}

Status Host::fit(llvm::Module& module, const llvm::TargetMachine& machine) const {
  const auto layout = machine.createDataLayout();
  TC_CHECK(check_triple(module.getTargetTriple(), machine.getTargetTriple()));
  TC_CHECK(check_layout(module, layout));
  TC_CHECK(check_globals(module));
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(layout);
  // What the module does not define may be anywhere in the address space, whatever model it was compiled for.
  for (auto& value : module.global_values())
    if (value.isDeclaration()) value.setDSOLocal(false);
  for (auto& function : module)
    if (!function.isDeclaration()) set_host_cpu(function, *this);
  return {};
}

}  // namespace tc::target::jit
