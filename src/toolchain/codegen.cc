// SPDX-License-Identifier: Apache-2.0
#include "toolchain/codegen.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "target/jit/compiler.h"
#include "target/jit/llvm_errors.h"
#include "target/jit/without_files.h"
#include "toolchain/bitcode_writer.h"
#include "toolchain/link.h"

namespace tc::toolchain {

namespace {

using target::Assembly;
using target::Effort;
using target::jit::CodeGenerator;
using target::jit::Compiler;
using target::jit::Host;

const llvm::Target* find_target(const std::string& triple, std::string& words) {
  initialize_targets();
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(llvm::Triple::normalize(triple)), words);
}

// Keeps what the code generator complains about, which would otherwise go to standard error or end the process.
class Complaints : public llvm::DiagnosticHandler {
 public:
  explicit Complaints(std::string& first) : first_(first) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error && first_.empty()) {
      llvm::raw_string_ostream stream(first_);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

 private:
  std::string& first_;
};

void call_through_got(llvm::Module& module) {
  for (auto& function : module)
    if (function.isDeclaration() && !function.isIntrinsic()) function.addFnAttr(llvm::Attribute::NonLazyBind);
  if (!module.getModuleFlag("RtLibUseGOT")) module.setRtLibUseGOT();
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

llvm::TargetOptions target_options() {
  llvm::TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  return options;
}

// One module on its way to machine code, as its bitcode says: in a context of its own, which can be left as it is when LLVM gives
// up.
class Generation {
 public:
  Generation(const llvm::Module& module, llvm::TargetMachine& machine)
      : bitcode_(write_bitcode(module)), machine_(machine) {}

  void run() {
    context_->setDiagnosticHandler(std::make_unique<Complaints>(complaint_));
    auto parsed = llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(as_text(bitcode_)), "ifunc"), *context_);
    if (!parsed) {
      complaint_ = llvm::toString(parsed.takeError());
      return;
    }
    module_ = std::move(*parsed);
    call_through_got(*module_);
    optimise(*module_, machine_);
    auto generator = CodeGenerator::create(machine_, llvm::CodeGenFileType::ObjectFile);
    if (!generator) {
      complaint_ = generator.error().message;
      return;
    }
    generator_ = std::move(*generator);
    object_ = generator_->run(*module_);
    generator_.reset();
  }

  // Never touches again what LLVM had in hands.
  void abandon() noexcept {
    (void)generator_.release();
    (void)module_.release();
    (void)context_.release();
  }

  const std::string& complaint() const noexcept { return complaint_; }
  const Bytes& object() const noexcept { return object_; }

 private:
  const Bytes bitcode_;
  llvm::TargetMachine& machine_;
  std::string complaint_;
  Bytes object_;
  std::unique_ptr<llvm::LLVMContext> context_ = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module_;
  std::unique_ptr<CodeGenerator> generator_;
};

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

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmParsers();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllDisassemblers();
  });
}

std::optional<Baseline> baseline_for(const TargetTriple& triple) {
  if (triple.system != System::linux_elf) return std::nullopt;
  switch (triple.arch) {
    case Arch::x86_64: return Baseline{"x86-64-v2", ""};
    case Arch::aarch64: return Baseline{"generic", ""};                     // ARMv8.0-A, atomics inline
    case Arch::riscv64: return Baseline{"generic-rv64", "+m,+a,+f,+d,+c"};  // RV64GC
    default: return std::nullopt;
  }
}

Status check_triple(const std::string& triple) {
  TC_CHECK(TargetTriple::parse(triple));
  const llvm::Triple parsed(llvm::Triple::normalize(triple));
  std::string words;
  if (parsed.getArch() == llvm::Triple::UnknownArch)
    return fail(TC_ERR_INVALID,
                "unknown target triple '{}': LLVM knows no architecture '{}'; try x86_64-linux-gnu or "
                "aarch64-linux-gnu",
                triple, triple.substr(0, triple.find('-')));
  if (!find_target(triple, words)) return fail(TC_ERR_INVALID, "unknown target triple '{}': {}", triple, words);
  if (!parsed.isArch64Bit())
    return fail(TC_ERR_INVALID, "target triple '{}' is no 64-bit machine, which ifuncs need: its pointers are shorter",
                triple);
  if (!parsed.isLittleEndian())
    return fail(TC_ERR_INVALID, "target triple '{}' is big-endian: payloads and ifuncs are 64-bit little-endian",
                triple);
  return {};
}

std::string normalised_triple(const std::string& triple) { return llvm::Triple::normalize(triple); }

Result<Bytes> generate_object(const llvm::Module& module, const Baseline& baseline, const std::string& label) {
  std::string words;
  const auto triple = module.getTargetTriple();
  const auto* const target = find_target(triple.str(), words);
  if (!target) return fail(TC_ERR_COMPILE, "{}: no code generator for {}: {}", label, triple.str(), words);
  const auto generator = target::jit::without_files(*target);
  std::unique_ptr<llvm::TargetMachine> machine(
      generator.createTargetMachine(triple, baseline.cpu, baseline.features, target_options(), llvm::Reloc::PIC_,
                                    std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine) return fail(TC_ERR_COMPILE, "{}: LLVM has no machine '{}' for {}", label, baseline.cpu, triple.str());
  Generation generation(module, *machine);
  target::jit::install_fatal_guard();
  if (const auto reason = target::jit::run_guarded([&] { generation.run(); })) {
    // LLVM was interrupted in the middle: destroying these could run into anything.
    generation.abandon();
    (void)machine.release();
    return fail(TC_ERR_COMPILE,
                "{}: LLVM cannot make machine code for {} ({}) of it: {}; what only some CPUs have travels as bitcode "
                "alone: give --no-object",
                label, baseline.cpu, triple.str(), reason->substr(0, reason->find('\n')));
  }
  if (!generation.complaint().empty())
    return fail(TC_ERR_COMPILE, "{}: code generation for {}: {}", label, triple.str(), generation.complaint());
  return generation.object();
}

Result<Bytes> generate_first_object(const llvm::Module& module, const Baseline& baseline, const std::string& label) {
  TC_ASSIGN(const auto host, Host::named(module.getTargetTriple().str(), baseline.cpu, baseline.features));
  Compiler compiler(host, Effort::baseline);
  return compiler.compile(write_bitcode(module), Assembly::allowed, label);
}

Result<Bytes> object_for_cpu(ByteView bitcode, const std::string& text, const std::string& cpu,
                             const std::string& features, const std::string& label) {
  initialize_targets();
  TC_CHECK(check_triple(text));
  TC_ASSIGN(const auto triple, TargetTriple::parse(text));
  TC_CHECK(check_features(triple, features));
  TC_ASSIGN(const auto host, Host::named(triple.text, cpu, features));
  Compiler compiler(host, Effort::tuned);
  // A node asks for this, for code whose author it does not name.
  TC_ASSIGN(const auto object, compiler.compile(bitcode, Assembly::refused, label));
  return link_object(object, triple, label);
}

}  // namespace tc::toolchain
