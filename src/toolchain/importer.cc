// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Attributes.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/ModRef.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/StripDeadPrototypes.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>

#include "toolchain/importer_check.h"
#include "toolchain/importer_entries.h"
#include "toolchain/importer_failures.h"
#include "toolchain/importer_strip.h"
#include "toolchain/resolve.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

constexpr llvm::StringRef algebraic = abi_names::algebraic_prefix;

// tc_algebraic_add_f64 and the like: what IEEE says, but in any order and fused.
llvm::Value* as_operation(llvm::IRBuilder<>& builder, llvm::StringRef name, llvm::CallInst& call) {
  if (call.arg_size() != 2 || !call.getType()->isFloatingPointTy()) return nullptr;
  auto* const left = call.getArgOperand(0);
  auto* const right = call.getArgOperand(1);
  if (left->getType() != call.getType() || right->getType() != call.getType()) return nullptr;
  if (name.starts_with("add_")) return builder.CreateFAdd(left, right);
  if (name.starts_with("sub_")) return builder.CreateFSub(left, right);
  if (name.starts_with("mul_")) return builder.CreateFMul(left, right);
  if (name.starts_with("div_")) return builder.CreateFDiv(left, right);
  return nullptr;
}

void lower_algebraic(llvm::Function& function) {
  const auto name = function.getName().substr(algebraic.size());
  for (auto* const user : llvm::make_early_inc_range(function.users())) {
    auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
    if (!call || call->getCalledOperand() != &function) continue;
    llvm::IRBuilder<> builder(call);
    llvm::FastMathFlags loose;
    loose.setAllowReassoc();
    loose.setAllowContract(true);
    loose.setAllowReciprocal();
    loose.setNoSignedZeros();
    builder.setFastMathFlags(loose);
    if (auto* const operation = as_operation(builder, name, *call)) {
      call->replaceAllUsesWith(operation);
      call->eraseFromParent();
    }
  }
}

// Reads what it is given, and keeps no pointer to it.
void only_reads(llvm::Function& function, unsigned argument) {
  function.addParamAttr(argument, llvm::Attribute::ReadOnly);
  function.addParamAttr(argument,
                        llvm::Attribute::getWithCaptureInfo(function.getContext(), llvm::CaptureInfo::none()));
}

// Tells the optimiser that the ifunc ABI copies what it is given, and makes the crate's tc_algebraic_*() operations.
void describe_abi(llvm::Module& module) {
  for (auto& function : module) {
    if (!function.isDeclaration()) continue;
    const auto name = function.getName();
    if (name.starts_with(algebraic)) lower_algebraic(function);
    if (!name.starts_with("tc_") || !is_ifunc_abi(name.str())) continue;
    // All of the ABI copies what it gets. Without this a variable that is replied is in memory all the time, for
    // whatever tc_data() gives could be that variable, and loops over the data exist twice.
    for (unsigned i = 0; i < function.arg_size(); ++i)
      if (function.getArg(i)->getType()->isPointerTy() && !(name == "tc_data" && i == 1)) only_reads(function, i);
    if (name == "tc_data" && function.arg_size() == 2 && function.getArg(1)->getType()->isPointerTy())
      function.addParamAttr(1, llvm::Attribute::getWithCaptureInfo(module.getContext(), llvm::CaptureInfo::none()));
  }
}

void drop(llvm::Module& module, const char* name) {
  if (auto* const list = module.getNamedGlobal(name)) list->eraseFromParent();
}

// Nothing but the entries can be reached from outside, so that all else may be inlined, changed and dropped.
void internalise(llvm::Module& module, const std::vector<std::string>& entries) {
  for (auto& value : module.global_values()) {
    if (value.isDeclaration() || value.getName().starts_with("llvm.")) continue;
    if (std::find(entries.begin(), entries.end(), value.getName()) != entries.end()) continue;
    if (auto* const object = llvm::dyn_cast<llvm::GlobalObject>(&value)) {
      object->setComdat(nullptr);
      object->setSection("");  // places that the author's own linker script gives a meaning
    }
    if (value.hasAvailableExternallyLinkage()) {  // a copy for inlining; the real one is in some library
      if (auto* const function = llvm::dyn_cast<llvm::Function>(&value)) function->deleteBody();
      continue;
    }
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    value.setDLLStorageClass(llvm::GlobalValue::DefaultStorageClass);
    value.setLinkage(llvm::GlobalValue::InternalLinkage);
    value.setDSOLocal(true);
  }
}

// The same stage as the front end's -flto=thin: inline, propagate, clean; no vectorising, no unrolling.
void optimise(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(builder.buildThinLTOPreLinkDefaultPipeline(llvm::OptimizationLevel::O3));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::StripDeadPrototypesPass());
  passes.run(module, modules);
}

// Keeps `entries` and what they need, hides and optimises it.
void reduce_to(llvm::Module& module, const std::vector<std::string>& entries) {
  drop(module, "llvm.used");
  drop(module, "llvm.compiler.used");
  internalise(module, entries);
  optimise(module);
}

// Is it of the ifunc alone, and not of LLVM?
bool is_own(const llvm::GlobalVariable& variable) {
  return variable.hasLocalLinkage() && !variable.getName().starts_with("llvm.");
}

// Gives names to the variables that the code can write, once nothing is optimised any more. A target that replaces one
// slice's code by another's finds them by these, so that both use the variables of the first (docs/code-cache.md). With them
// to constants whose address may have been stored in a variable and is compared later, as that of a list's sentinel.
void name_variables(llvm::Module& module) {
  const auto is_variable = [](const auto& global) { return is_own(global) && !global.isConstant(); };
  if (std::none_of(module.global_begin(), module.global_end(), is_variable)) return;
  unsigned number = 0;
  for (auto& variable : module.globals()) {
    if (!is_own(variable) || (variable.isConstant() && variable.hasGlobalUnnamedAddr())) continue;
    variable.setName(fmt::format("{}{}", abi_names::variable_prefix, number++));
    variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
    variable.setDSOLocal(false);  // it may lie far from the code that uses it
    variable.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::None);
  }
}

// The symbols that a slice of this role keeps.
std::vector<std::string> kept(uint8_t entries, SliceRole role, std::vector<std::string> exports = {}) {
  if (role == SliceRole::target) {
    exports.emplace_back(abi_names::main);
    return exports;
  }
  std::vector<std::string> names;
  if (entries & entry_payload_get_max_size) names.push_back(abi_names::payload_get_max_size);
  if (entries & entry_payload_bound) names.push_back(abi_names::payload_bound);
  if (entries & (entry_payload_init | entry_payload_init_2022)) names.push_back(abi_names::payload_init);
  return names;
}

// All steps after the entries.
Result<ImportedSlice> make_slice(std::unique_ptr<llvm::Module> module, const std::vector<std::string>& entries,
                                 const ImportOptions& options, SliceRole role) {
  if (options.allow_ctors) construct_on_first_call(*module, entries);
  // At the source there is nobody to tell: what ends a program there is refused as undefined, or ends it.
  if (role == SliceRole::target) forget_failure_bodies(*module);
  reduce_to(*module, entries);
  if (role == SliceRole::target) {
    if (lower_failures(*module, entries)) reduce_to(*module, entries);
    catch_all_in(*module, abi_names::main);
  }
  drop_unreachable_resumes(*module);
  TC_CHECK(check_can_travel(*module, options));
  // Only now: what the entries do not reach may be tied to a CPU, and much that is goes away in optimising.
  if (!options.retarget.empty()) TC_CHECK(retarget(*module, options.retarget, options.label));
  // A library stays as it was linked first.
  if (role == SliceRole::target && !options.library) name_variables(*module);
  ImportedSlice slice;
  slice.undefined = undefined_symbols(*module, options.label);
  slice.has_exceptions = unwinds(*module);
  strip_for_travel(*module, slice.has_exceptions);
  slice.module = std::move(module);
  return slice;
}

}  // namespace

Result<std::unique_ptr<llvm::Module>> parse(ByteView bitcode, llvm::LLVMContext& context, const std::string& label) {
  llvm::SMDiagnostic diagnostic;
  const auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(as_text(bitcode)), label);
  auto module = llvm::parseIR(buffer->getMemBufferRef(), diagnostic, context);
  if (!module) return fail(TC_ERR_MALFORMED, "{}: LLVM cannot read it: {}", label, diagnostic.getMessage().str());
  std::string words;
  llvm::raw_string_ostream stream(words);
  bool broken_debug_info = false;
  if (llvm::verifyModule(*module, &stream, &broken_debug_info))
    return fail(TC_ERR_MALFORMED, "{}: LLVM finds the code broken: {}", label, words.substr(0, words.find('\n')));
  return module;
}

Result<Imported> import_module(std::unique_ptr<llvm::Module> module, const ImportOptions& options) {
  TC_ASSIGN(auto imported, settle_entries(*module, options));
  TC_CHECK(check_sections(*module, options));
  strip_cpu(*module);
  describe_abi(*module);
  const auto source_entries = kept(imported.entries, SliceRole::source);
  if (!source_entries.empty()) {
    TC_ASSIGN(imported.source, make_slice(llvm::CloneModule(*module), source_entries, options, SliceRole::source));
  }
  TC_ASSIGN(imported.target, make_slice(std::move(module), kept(imported.entries, SliceRole::target, imported.exports),
                                        options, SliceRole::target));
  return imported;
}

}  // namespace tc::toolchain
