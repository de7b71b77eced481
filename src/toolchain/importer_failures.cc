// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer_failures.h"

#include <llvm/Analysis/CFG.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "threechains/ifunc.h"
#include "toolchain/importer_check.h"
#include "toolchain/importer_return.h"
#include "toolchain/resolve.h"

namespace tc::toolchain {

namespace {

struct Reason {
  int32_t code;
  std::string text;
};

struct Known {
  std::string_view part;  // of the readable name
  int32_t code;
  std::string_view text;
};

constexpr Known of_rust[] = {
    {"panicking::panic_bounds_check", TC_FAIL_BOUNDS, "index out of bounds"},
    {"slice::index::slice_", TC_FAIL_BOUNDS, "slice index out of range"},
    {"str::slice_error_fail", TC_FAIL_BOUNDS, "string index out of range"},
    {"len_mismatch_fail", TC_FAIL_BOUNDS, "slices of different lengths"},
    {"by_zero", TC_FAIL_ARITHMETIC, "division by zero"},
    {"_overflow", TC_FAIL_ARITHMETIC, "arithmetic overflow"},
    {"option::unwrap_failed", TC_FAIL_PANIC, "unwrap() of None"},
    {"result::unwrap_failed", TC_FAIL_PANIC, "unwrap() of an Err"},
    {"option::expect_failed", TC_FAIL_PANIC, "expect() of None"},
    {"cell::panic_already", TC_FAIL_PANIC, "RefCell already borrowed"},
    {"alloc", TC_FAIL_PANIC, "out of memory"},
};

constexpr Known of_julia[] = {
    {"bounds_error", TC_FAIL_BOUNDS, "index out of bounds"},
    {"undefined_var_error", TC_FAIL_EXCEPTION, "undefined variable"},
    {"type_error", TC_FAIL_EXCEPTION, "TypeError"},
    {"throw", TC_FAIL_EXCEPTION, "exception thrown"},
    {"error", TC_FAIL_EXCEPTION, "error() called"},
};

// By their whole names.
constexpr Known of_c[] = {
    {"abort", TC_FAIL_ABORT, "abort()"},
    {"exit", TC_FAIL_ABORT, "exit()"},
    {"_exit", TC_FAIL_ABORT, "_exit()"},
    {"_Exit", TC_FAIL_ABORT, "_Exit()"},
    {"quick_exit", TC_FAIL_ABORT, "quick_exit()"},
    {"__stack_chk_fail", TC_FAIL_BOUNDS, "stack overrun"},
    {"__chk_fail", TC_FAIL_BOUNDS, "buffer overrun"},
};

// By their whole names as well: what C++ calls where it would throw.
constexpr Known of_cxx[] = {
    {"__cxa_bad_cast", TC_FAIL_EXCEPTION, "std::bad_cast"},
    {"__cxa_bad_typeid", TC_FAIL_EXCEPTION, "std::bad_typeid"},
    {"__cxa_throw_bad_array_new_length", TC_FAIL_EXCEPTION, "std::bad_array_new_length"},
};

// The text at `pointer`, up to `size` bytes or its NUL; nothing when it is no constant.
std::optional<std::string> text_at(const llvm::Value* pointer, std::optional<uint64_t> size = {}) {
  const auto* const global = llvm::dyn_cast<llvm::GlobalVariable>(pointer->stripPointerCasts());
  if (!global || !global->hasDefinitiveInitializer()) return {};
  const auto* constant = global->getInitializer();
  // Rust before 1.80 wraps texts: <{ [N x i8] }>.
  if (llvm::isa<llvm::ConstantStruct>(constant) && constant->getNumOperands() == 1)
    constant = llvm::cast<llvm::Constant>(constant->getOperand(0));
  const auto* const data = llvm::dyn_cast<llvm::ConstantDataArray>(constant);
  if (!data || !data->isString()) return {};
  const auto text = size ? data->getAsString().take_front(*size) : data->getAsString();
  return text.take_until([](char c) { return c == 0; }).take_front(120).str();
}

std::optional<uint64_t> number(const llvm::Value* value) {
  if (const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(value)) return constant->getZExtValue();
  // Rust's fmt::Arguments that are only a text hold its length as a pointer: twice, plus one.
  if (const auto* const expression = llvm::dyn_cast<llvm::ConstantExpr>(value);
      expression && expression->getOpcode() == llvm::Instruction::IntToPtr)
    if (const auto inner = number(expression->getOperand(0)); inner && *inner % 2 == 1) return *inner / 2;
  return {};
}

// What panic!("...") and its like were given, when it needed no formatting.
std::optional<std::string> words_of_panic(const llvm::CallBase& call) {
  if (call.arg_size() < 3) return {};
  const auto size = number(call.getArgOperand(1));
  return size ? text_at(call.getArgOperand(0), size) : std::nullopt;
}

bool is_of_rust(std::string_view readable) {
  if (readable.starts_with("<")) return false;
  for (const std::string_view root : {"core::", "std::", "alloc::", "__rustc::rust_begin_unwind", "rust_begin_unwind"})
    if (readable.starts_with(root)) return true;
  return false;
}

// Rust's old mangling looks like C++'s, with a hash behind it: _ZN4core9panicking5panic17h0123456789abcdefE.
bool is_mangled_by_rust(llvm::StringRef name) {
  return name.starts_with("_R") || (name.starts_with("_ZN") && name.ends_with("E") && name.contains("17h")) ||
         name == "rust_begin_unwind";
}

std::optional<Reason> rust_reason(const llvm::CallBase& call, llvm::StringRef name) {
  if (!is_mangled_by_rust(name)) return {};
  const auto readable = llvm::demangle(name.str());
  if (!is_of_rust(readable)) return {};
  for (const auto& known : of_rust) {
    if (readable.find(known.part) == std::string::npos) continue;
    const auto words = known.code == TC_FAIL_PANIC ? words_of_panic(call) : std::nullopt;
    return Reason{known.code, words.value_or(std::string(known.text))};
  }
  const auto words = words_of_panic(call).value_or("panic");
  const bool arithmetic = words.starts_with("attempt to ");  // as Rust before 1.80 says overflow
  return Reason{arithmetic ? TC_FAIL_ARITHMETIC : TC_FAIL_PANIC, words};
}

// std::__throw_out_of_range_fmt(char const*, ...): what the library calls where it would throw.
std::optional<Reason> cxx_reason(llvm::StringRef name, bool catches) {
  if (name == "_ZSt9terminatev" || name == "__cxa_pure_virtual") return Reason{TC_FAIL_ABORT, "std::terminate()"};
  if (name.starts_with("_ZSt") && name.contains("__glibcxx_assert_fail"))
    return Reason{TC_FAIL_ABORT, "assertion of the C++ library failed"};
  if (catches) return {};
  for (const auto& known : of_cxx)
    if (name == llvm::StringRef(known.part)) return Reason{known.code, std::string(known.text)};
  if (!name.starts_with("_ZSt")) return {};
  constexpr llvm::StringRef mark = "__throw_";
  const auto at = name.find(mark);
  if (at == llvm::StringRef::npos) return {};
  auto what = name.substr(at + mark.size());
  what = what.take_while([](char c) { return c == '_' || (c >= 'a' && c <= 'z'); }).rtrim("_");
  what.consume_back("v");
  what.consume_back("_fmt");
  return Reason{what == "out_of_range" ? TC_FAIL_BOUNDS : TC_FAIL_EXCEPTION, "std::" + what.str()};
}

std::optional<Reason> c_reason(const llvm::CallBase& call, llvm::StringRef name) {
  for (const auto& known : of_c)
    if (name == llvm::StringRef(known.part)) return Reason{known.code, std::string(known.text)};
  if (name != "__assert_fail" && name != "__assert") return {};
  const auto words = call.arg_size() > 0 ? text_at(call.getArgOperand(0)) : std::nullopt;
  return Reason{TC_FAIL_ABORT, words ? fmt::format("assertion '{}' failed", *words) : "assertion failed"};
}

std::optional<Reason> julia_reason(llvm::StringRef name) {
  name.consume_front("i");
  if (!name.consume_front("jl_")) return {};
  for (const auto& known : of_julia)
    if (name.contains(known.part)) return Reason{known.code, std::string(known.text)};
  return {};
}

bool never_returns(const llvm::CallBase& call) {
  return call.doesNotReturn() || llvm::isa_and_nonnull<llvm::UnreachableInst>(call.getNextNode()) ||
         (llvm::isa<llvm::InvokeInst>(call) &&
          llvm::isa<llvm::UnreachableInst>(llvm::cast<llvm::InvokeInst>(call).getNormalDest()->front()));
}

std::optional<Reason> reason(const llvm::CallBase& call, bool catches) {
  const auto* const callee = call.getCalledFunction();
  if (!callee) return {};
  if (callee->getIntrinsicID() == llvm::Intrinsic::trap || callee->getIntrinsicID() == llvm::Intrinsic::ubsantrap)
    return Reason{TC_FAIL_TRAP, "trap (a compiler's check failed, or __builtin_trap())"};
  if (!callee->isDeclaration() || callee->isIntrinsic() || !never_returns(call)) return {};
  const auto name = callee->getName();
  if (auto found = rust_reason(call, name)) return found;
  if (auto found = cxx_reason(name, catches)) return found;
  if (auto found = julia_reason(name)) return found;
  return c_reason(call, name);
}

// What a trap is for is said by the check in front of it; others say it themselves. The line is the author's.
std::string sentence(const Reason& reason, const llvm::CallBase& call) {
  const auto where = position_of_author(call, "");
  if (where.empty()) return reason.text;
  return fmt::format("{} at {}", reason.text, std::filesystem::path(where).filename().string());
}

// Allocation fails by an exception, which code without exceptions cannot pass on. It asks for null instead; the branch that
// sees null ends in a call of `given_up`, to be lowered with the other failures.
class Allocations {
 public:
  explicit Allocations(llvm::Module& module) : module_(module) {}

  void lower(std::vector<Failure>& failures) {
    std::vector<llvm::CallInst*> calls;
    for (const char* name : {"_Znwm", "_Znam", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t"})
      if (auto* const function = module_.getFunction(name); function && function->isDeclaration())
        for (auto* const user : function->users())
          if (auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
              call && call->getCalledFunction() == function && call->getFunction()->doesNotThrow())
            calls.push_back(call);
    for (auto* const call : calls) failures.push_back(lower(*call));
  }

 private:
  Failure lower(llvm::CallInst& call) {
    llvm::IRBuilder<> builder(&call);
    llvm::SmallVector<llvm::Value*, 3> arguments(call.args());
    arguments.push_back(nothrow());
    llvm::SmallVector<llvm::Type*, 3> types;
    for (const auto* const argument : arguments) types.push_back(argument->getType());
    const auto name = call.getCalledFunction()->getName() + "RKSt9nothrow_t";
    const auto fallible =
        module_.getOrInsertFunction(name.str(), llvm::FunctionType::get(builder.getPtrTy(), types, false));
    auto* const memory = builder.CreateCall(fallible, arguments);
    memory->addRetAttr(llvm::Attribute::NoAlias);
    memory->setDoesNotThrow();
    call.replaceAllUsesWith(memory);
    auto* const gone = llvm::SplitBlockAndInsertIfThen(
        builder.CreateIsNull(memory), &call, true, llvm::MDBuilder(module_.getContext()).createUnlikelyBranchWeights());
    call.eraseFromParent();
    builder.SetInsertPoint(gone);
    builder.SetCurrentDebugLocation(memory->getDebugLoc());
    auto* const given_up = builder.CreateCall(module_.getOrInsertFunction("abort", builder.getVoidTy()));
    return {given_up, TC_FAIL_EXCEPTION, sentence({TC_FAIL_EXCEPTION, "std::bad_alloc"}, *given_up)};
  }

  // That there is such an argument is all that counts.
  llvm::Value* nothrow() {
    auto* const byte = llvm::Type::getInt8Ty(module_.getContext());
    if (nothrow_ == nullptr)
      nothrow_ = new llvm::GlobalVariable(module_, byte, true, llvm::GlobalValue::InternalLinkage,
                                          llvm::ConstantInt::get(byte, 0), "tc.nothrow");
    return nothrow_;
  }

  llvm::Module& module_;
  llvm::GlobalVariable* nothrow_ = nullptr;
};

// Compiled for unwinding, but with nothing to do when it happens: as good as none.
void forget_idle_personalities(llvm::Module& module) {
  for (auto& function : module) {
    if (!function.hasPersonalityFn()) continue;
    const bool idle = std::none_of(function.begin(), function.end(), [](auto& block) { return block.isEHPad(); });
    if (idle) function.setPersonalityFn(nullptr);
  }
}

}  // namespace

void forget_failure_bodies(llvm::Module& module) {
  for (auto& function : module) {
    if (function.isDeclaration() || !function.doesNotReturn() || !is_mangled_by_rust(function.getName())) continue;
    if (is_of_rust(llvm::demangle(function.getName().str()))) {
      function.deleteBody();
      function.setComdat(nullptr);
    }
  }
}

bool lower_failures(llvm::Module& module, const std::vector<std::string>& entries) {
  forget_idle_personalities(module);
  const bool catches = std::any_of(module.begin(), module.end(), [](auto& f) { return f.hasPersonalityFn(); });
  std::vector<Failure> failures;
  for (auto& function : module)
    for (auto& block : function)
      for (auto& instruction : block)
        if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction))
          if (const auto found = reason(*call, catches)) {
            failures.push_back({call, found->code, sentence(*found, *call)});
            break;  // whatever follows is never reached
          }
  Allocations(module).lower(failures);
  if (failures.empty()) return false;
  leave_entries_at(module, failures, entries);
  return true;
}

namespace {

bool is_cxx(const llvm::Module& module) {
  for (const auto* const unit : module.debug_compile_units())
    if (llvm::dwarf::isCPlusPlus(
            static_cast<llvm::dwarf::SourceLanguage>(unit->getSourceLanguage().getUnversionedName())))
      return true;
  return false;
}

// A call of something outside, of which nobody promised that it does not throw, by C++ that was compiled for exceptions.
// Bitcode without positions does not name its language, but what is C++ outside has a name of C++.
bool may_throw(const llvm::CallBase& call, bool is_cxx) {
  if (call.doesNotThrow() || call.getFunction()->doesNotThrow() || call.isInlineAsm()) return false;
  const auto* const callee = call.getCalledFunction();
  if (callee == nullptr) return is_cxx;
  if (!callee->isDeclaration() || callee->isIntrinsic() || is_ifunc_abi(callee->getName().str())) return false;
  return is_cxx || callee->getName().starts_with("_Z");
}

bool calls_what_may_throw(const llvm::Module& module) {
  const bool cxx = is_cxx(module);
  for (const auto& function : module)
    for (const auto& block : function)
      for (const auto& instruction : block)
        if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && may_throw(*call, cxx))
          return true;
  return false;
}

}  // namespace

bool unwinds(const llvm::Module& module) {
  for (const char* name : {"__cxa_throw", "__cxa_rethrow", "_Unwind_Resume"})
    if (const auto* const function = module.getFunction(name); function && !function->use_empty()) return true;
  if (std::any_of(module.begin(), module.end(), [](const auto& f) { return f.hasPersonalityFn(); })) return true;
  return calls_what_may_throw(module);
}

// As LLVM's code generator does it, but only where it optimises.
void drop_unreachable_resumes(llvm::Module& module) {
  for (auto& function : module) {
    std::vector<const llvm::Instruction*> cleanups;
    std::vector<llvm::ResumeInst*> resumes;
    for (auto& block : function) {
      if (const auto* const pad = block.getLandingPadInst(); pad && pad->isCleanup()) cleanups.push_back(pad);
      if (auto* const resume = llvm::dyn_cast<llvm::ResumeInst>(block.getTerminator())) resumes.push_back(resume);
    }
    for (auto* const resume : resumes)
      if (std::ranges::none_of(cleanups, [&](auto* pad) { return llvm::isPotentiallyReachable(pad, resume); }))
        llvm::changeToUnreachable(resume);
  }
}

void catch_all_in(llvm::Module& module, const std::string& name) {
  auto* const inner = module.getFunction(name);
  if (!inner || inner->isDeclaration() || inner->doesNotThrow() || !unwinds(module)) return;
  auto& context = module.getContext();
  inner->setName(name + ".inner");
  auto* const outer =
      llvm::Function::Create(inner->getFunctionType(), llvm::GlobalValue::ExternalLinkage, name, module);
  inner->replaceUsesWithIf(outer, [](auto&) { return true; });
  inner->setLinkage(llvm::GlobalValue::InternalLinkage);
  inner->setDSOLocal(true);

  llvm::IRBuilder<> builder(context);
  auto* const pointer = builder.getPtrTy();
  auto personality =
      module.getOrInsertFunction("__gxx_personality_v0", llvm::FunctionType::get(builder.getInt32Ty(), true));
  outer->setPersonalityFn(llvm::cast<llvm::Constant>(personality.getCallee()));
  auto* const start = llvm::BasicBlock::Create(context, "", outer);
  auto* const done = llvm::BasicBlock::Create(context, "", outer);
  auto* const caught = llvm::BasicBlock::Create(context, "", outer);

  builder.SetInsertPoint(start);
  std::vector<llvm::Value*> arguments;
  for (auto& argument : outer->args()) arguments.push_back(&argument);
  builder.CreateInvoke(inner, done, caught, arguments);
  builder.SetInsertPoint(done);
  builder.CreateRetVoid();

  builder.SetInsertPoint(caught);
  auto* const pad = builder.CreateLandingPad(llvm::StructType::get(pointer, builder.getInt32Ty()), 1);
  pad->addClause(llvm::ConstantPointerNull::get(pointer));
  builder.CreateCall(module.getOrInsertFunction("__cxa_begin_catch", pointer, pointer),
                     {builder.CreateExtractValue(pad, 0)});
  builder.CreateCall(module.getOrInsertFunction("tc_fail", builder.getVoidTy(), builder.getInt32Ty(), pointer),
                     {builder.getInt32(static_cast<uint32_t>(TC_FAIL_EXCEPTION)),
                      builder.CreateGlobalString("an exception was thrown and not caught", "tc.failure")});
  builder.CreateCall(module.getOrInsertFunction("__cxa_end_catch", builder.getVoidTy()));
  builder.CreateRetVoid();
}

}  // namespace tc::toolchain
