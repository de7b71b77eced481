// SPDX-License-Identifier: Apache-2.0
#include "target/jit/compiler.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>

#include "target/jit/kept_addresses.h"
#include "target/jit/llvm_errors.h"

namespace tc::target::jit {

namespace {

// A context keeps every type and constant it ever saw. A new one costs some 60 µs and forgets them.
constexpr unsigned uses_of_a_context = 256;

// The rest of what LLVM says is a listing.
std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

// Collects errors; LLVM's own handler would print them and exit.
class Collector final : public llvm::DiagnosticHandler {
 public:
  explicit Collector(std::string& errors) : errors_(errors) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) override {
    if (diagnostic.getSeverity() != llvm::DS_Error) return true;
    std::string words;
    llvm::raw_string_ostream stream(words);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    diagnostic.print(printer);
    errors_ += (errors_.empty() ? "" : "; ") + first_line(words);
    return true;
  }

 private:
  std::string& errors_;
};

Status verify(const llvm::Module& module) {
  std::string words;
  llvm::raw_string_ostream stream(words);
  if (!llvm::verifyModule(module, &stream)) return {};
  return fail(TC_ERR_COMPILE, "bitcode is not valid: {}", first_line(words));
}

const llvm::InlineAsm* assembly_of(const llvm::Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  const auto* const assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly && !assembly->getAsmString().empty() ? assembly : nullptr;
}

Status refuse_assembly(const llvm::Module& module) {
  constexpr const char* refused =
      "bitcode holds {}, which only code of those who may run any code in this node's process may have: use a compiler "
      "builtin, or build with machine code for this kind of processor";
  if (!module.getModuleInlineAsm().empty()) return fail(TC_ERR_COMPILE, refused, "assembly at file scope");
  for (const auto& function : module)
    for (const auto& instruction : llvm::instructions(function))
      if (assembly_of(instruction) != nullptr) return fail(TC_ERR_COMPILE, refused, "inline assembly");
  return {};
}

// Optimisations turn one library call into another (printf into puts, pow into exp2). The bundle was checked for
// the symbols that it names, and only those resolve: so only functions that the module names itself may be called,
// besides the four that every compiler takes for granted.
llvm::TargetLibraryInfoImpl known_functions(const llvm::Module& module, const llvm::Triple& triple) {
  llvm::TargetLibraryInfoImpl library(triple);
  library.disableAllFunctions();
  for (const auto function : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset, llvm::LibFunc_memcmp})
    library.setAvailable(function);
  for (const auto& function : module) {
    llvm::LibFunc known;
    if (function.isDeclaration() && library.getLibFunc(function.getName(), known)) library.setAvailable(known);
  }
  return library;
}

// The O3 pipeline for this CPU, over bitcode that stopped before optimisations which need to know the CPU (`-flto=thin`
// pre-link form). `module` fits the host already and is valid.
void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  tuning.LoopUnrolling = true;
  llvm::PassBuilder builder(&machine, tuning);

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager call_graph;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass(
      [library = known_functions(module, machine.getTargetTriple())] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(call_graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, call_graph, modules);

  // The second half of ThinLTO, without other modules to import from: it expects exactly the form that bundles
  // carry, and takes bitcode in any other form as well.
  builder.buildThinLTODefaultPipeline(llvm::OptimizationLevel::O3, nullptr).run(module, modules);
}

}  // namespace

Result<std::unique_ptr<CodeGenerator>> CodeGenerator::create(llvm::TargetMachine& machine,
                                                             llvm::CodeGenFileType output) {
  std::unique_ptr<CodeGenerator> generator(new CodeGenerator);
  // Modules are verified before they come here, once, with a message; the pass manager's own check aborts.
  constexpr bool skip_verifier = true;
  if (machine.addPassesToEmitFile(generator->passes_, generator->stream_, nullptr, output, skip_verifier))
    return fail(TC_ERR_UNSUPPORTED, "LLVM cannot write {} for {}",
                output == llvm::CodeGenFileType::ObjectFile ? "object files" : "assembly",
                machine.getTargetTriple().str());
  return generator;
}

Bytes CodeGenerator::run(llvm::Module& module) {
  object_.clear();
  passes_.run(module);
  const auto view = as_bytes({object_.data(), object_.size()});
  return Bytes(view.begin(), view.end());
}

Status Compiler::prepare() {
  if (!context_ || ++context_uses_ > uses_of_a_context) {
    context_ = std::make_unique<llvm::LLVMContext>();
    context_->setDiscardValueNames(true);
    context_->setDiagnosticHandler(std::make_unique<Collector>(errors_));
    context_uses_ = 1;
  }
  if (!machine_) {
    TC_ASSIGN(machine_, host_.machine(effort_));
  }
  if (!generator_) {
    TC_ASSIGN(generator_, CodeGenerator::create(*machine_, output_));
  }
  errors_.clear();
  return {};
}

Status Compiler::reported() {
  if (errors_.empty()) return {};
  return fail(TC_ERR_COMPILE, "LLVM cannot compile it: {}", errors_);
}

Result<std::unique_ptr<llvm::Module>> Compiler::parse(ByteView bitcode, const std::string& label) {
  // Bitcode only: LLVM's parseIR takes text as well, and crashes on junk.
  const auto text = as_text(bitcode);
  auto parsed =
      llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), label), *context_);
  if (!parsed) return compile_error("LLVM cannot read the bitcode", parsed.takeError());
  TC_CHECK(reported());
  return std::move(*parsed);
}

Compiler::Compiler(const Host& host, Effort effort, llvm::CodeGenFileType output)
    : host_(host), effort_(effort), output_(output) {
  install_fatal_guard();
}

template <class Value>
Result<Value> Compiler::guarded(ByteView bitcode, llvm::function_ref<Result<Value>()> work) {
  const std::lock_guard lock(mutex_);
  if (!fatal_.empty())
    if (const auto found = fatal_.find(ContentId::of(bitcode)); found != fatal_.end()) return fail(found->second);
  Result<Value> result;
  if (const auto reason = run_guarded([&] { result = work(); })) return abandon(bitcode, *reason);
  return result;
}

Result<Bytes> Compiler::compile(ByteView bitcode, Assembly assembly, const std::string& label) {
  return guarded<Bytes>(bitcode, [&] { return compile_unguarded(bitcode, assembly, label); });
}

Result<bool> Compiler::may_exchange(ByteView bitcode, const std::string& label) {
  return guarded<bool>(bitcode, [&]() -> Result<bool> {
    TC_CHECK(prepare());
    TC_ASSIGN(const auto module, parse(bitcode, label));
    return !keeps_code_addresses(*module);
  });
}

Result<Bytes> Compiler::compile_unguarded(ByteView bitcode, Assembly assembly, const std::string& label) {
  TC_CHECK(prepare());
  TC_ASSIGN(auto module, parse(bitcode, label));
  if (assembly == Assembly::refused) TC_CHECK(refuse_assembly(*module));
  TC_CHECK(host_.fit(*module, *machine_));
  TC_CHECK(verify(*module));
  if (effort_ == Effort::tuned) optimize(*module, *machine_);
  auto object = generator_->run(*module);
  auto verdict = reported();
  if (verdict) return object;
  generator_.reset();
  return fail(std::move(verdict).error());
}

std::unexpected<Error> Compiler::abandon(ByteView bitcode, const std::string& reason) {
  given_up_.fetch_add(1, std::memory_order_relaxed);
  // LLVM was interrupted in the middle: destroying these could run into anything.
  (void)generator_.release();
  (void)machine_.release();
  (void)context_.release();
  const Error error{TC_ERR_COMPILE,
                    fmt::format("LLVM cannot compile it for this CPU ({}): {}", host_.cpu, first_line(reason))};
  fatal_.emplace(ContentId::of(bitcode), error);
  return fail(error);
}

}  // namespace tc::target::jit
