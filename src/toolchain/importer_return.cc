// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer_return.h"

#include <llvm/IR/AttributeMask.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <map>
#include <set>

#include "toolchain/resolve.h"

namespace tc::toolchain {

namespace {

using Functions = std::set<llvm::Function*>;

template <class Visit>
void for_each_call(llvm::Function& function, Visit visit) {
  std::vector<llvm::CallBase*> calls;  // first, as visitors split blocks
  for (auto& block : function)
    for (auto& instruction : block)
      if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction)) calls.push_back(call);
  for (auto* const call : calls) visit(*call);
}

// Initialisers of a function's static variables that have begun and not ended. A call that leaves there gives them up: the
// next one would wait for their end for ever.
class Initialisers {
 public:
  explicit Initialisers(llvm::Function& function) : dominators_(function) {
    for_each_call(function, [&](llvm::CallBase& call) {
      const auto* const callee = call.getCalledFunction();
      if (callee == nullptr || call.arg_size() != 1) return;
      if (callee->getName() == "__cxa_guard_acquire") add_begin(call);
      if (callee->getName() == "__cxa_guard_release") ends_.push_back(&call);
    });
  }

  // Their guards.
  std::vector<llvm::Value*> open_at(const llvm::Instruction& at) const {
    std::vector<llvm::Value*> guards;
    for (const auto& [guard, begin] : begins_) {
      const auto ended = [&](const llvm::CallBase* end) {
        return end->getArgOperand(0) == guard && dominators_.dominates(end, &at);
      };
      if (dominators_.dominates(begin, at.getParent()) && std::none_of(ends_.begin(), ends_.end(), ended))
        guards.push_back(guard);
    }
    return guards;
  }

 private:
  static bool is_zero(const llvm::Value* value) {
    const auto* const constant = llvm::dyn_cast<llvm::Constant>(value);
    return constant != nullptr && constant->isNullValue();
  }

  // The initialiser follows where the result is not 0.
  void add_begin(llvm::CallBase& acquire) {
    if (!llvm::isa<llvm::GlobalVariable>(acquire.getArgOperand(0))) return;
    for (auto* const user : acquire.users()) {
      const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(user);
      if (compare == nullptr || !compare->isEquality() || !is_zero(compare->getOperand(1))) continue;
      for (auto* const branch : compare->users())
        if (const auto* const to = llvm::dyn_cast<llvm::BranchInst>(branch); to != nullptr)
          begins_.push_back(
              {acquire.getArgOperand(0),
               {to->getParent(), to->getSuccessor(compare->getPredicate() == llvm::CmpInst::ICMP_EQ ? 1 : 0)}});
    }
  }

  struct Begin {
    llvm::Value* guard;
    llvm::BasicBlockEdge edge;
  };
  llvm::DominatorTree dominators_;
  std::vector<Begin> begins_;
  std::vector<const llvm::CallBase*> ends_;
};

class Leaver {
 public:
  Leaver(llvm::Module& module, const std::vector<std::string>& entries) : module_(module), entries_(entries) {}

  void run(const std::vector<Failure>& failures) {
    for (const auto& failure : failures) failing_.insert(failure.call->getFunction());
    find_callers();
    find_open_initialisers(failures);
    for (auto* const function : failing_) check_calls(*function);
    for (const auto& failure : failures) fail_at(failure);
    for (auto* const function : failing_) forget_promises(*function);
    start_without_failure();
  }

 private:
  bool is_entry(const llvm::Function& function) const {
    return std::find(entries_.begin(), entries_.end(), function.getName()) != entries_.end();
  }
  static bool called(const llvm::Function& function) { return !function.use_empty(); }

  // May this call come back with the ifunc on its way out?
  bool can_fail(const llvm::CallBase& call) const {
    auto* const callee = call.getCalledFunction();
    if (callee && failing_.contains(callee)) return true;
    if (!escaped_ || call.isInlineAsm()) return false;
    return !callee || (callee->isDeclaration() && !callee->isIntrinsic() && !is_ifunc_abi(callee->getName().str()));
  }

  void find_callers() {
    for (bool more = true; more;) {
      more = false;
      escaped_ = std::any_of(failing_.begin(), failing_.end(), [](auto* f) { return f->hasAddressTaken(); });
      for (auto& function : module_) {
        if (function.isDeclaration() || failing_.contains(&function)) continue;
        for_each_call(function, [&](const llvm::CallBase& call) {
          if (can_fail(call)) more = failing_.insert(&function).second || more;
        });
      }
    }
  }

  // Before anything changes.
  void find_open_initialisers(const std::vector<Failure>& failures) {
    if (module_.getFunction("__cxa_guard_acquire") == nullptr) return;
    std::set<const llvm::CallBase*> failing_calls;
    for (const auto& failure : failures) failing_calls.insert(failure.call);
    for (auto* const function : failing_) {
      const Initialisers initialisers(*function);
      for_each_call(*function, [&](const llvm::CallBase& call) {
        if (!can_fail(call) && !failing_calls.contains(&call)) return;
        if (auto open = initialisers.open_at(call); !open.empty()) open_.emplace(&call, std::move(open));
      });
    }
  }

  // Returns from the function because of `call`, which may not be there any more.
  void leave(llvm::IRBuilder<>& builder, const llvm::CallBase* call, const llvm::Function& function) {
    if (const auto open = open_.find(call); open != open_.end())
      for (auto* const guard : open->second)
        builder.CreateCall(module_.getOrInsertFunction("__cxa_guard_abort", builder.getVoidTy(), builder.getPtrTy()),
                           {guard});
    return_nothing(builder, function);
  }

  // The byte's address: the same for as long as a function runs, so the optimiser asks for it once.
  llvm::Value* flag(llvm::IRBuilder<>& builder) {
    if (!tc_leaving_) {
      tc_leaving_ = module_.getOrInsertFunction("tc_leaving", builder.getPtrTy());
      auto& function = llvm::cast<llvm::Function>(*tc_leaving_.getCallee());
      function.setDoesNotAccessMemory();
      function.setDoesNotThrow();
      function.setWillReturn();
      function.addRetAttr(llvm::Attribute::getWithDereferenceableBytes(module_.getContext(), 1));
    }
    return builder.CreateCall(tc_leaving_);
  }

  static void return_nothing(llvm::IRBuilder<>& builder, const llvm::Function& function) {
    auto* const type = function.getReturnType();
    if (type->isVoidTy())
      builder.CreateRetVoid();
    else
      builder.CreateRet(llvm::Constant::getNullValue(type));
  }

  void check_calls(llvm::Function& function) {
    for_each_call(function, [&](llvm::CallBase& call) {
      if (!can_fail(call)) return;
      call.removeFnAttr(llvm::Attribute::NoReturn);
      if (auto* const invoke = llvm::dyn_cast<llvm::InvokeInst>(&call))
        return check_before(*llvm::SplitEdge(invoke->getParent(), invoke->getNormalDest())->getTerminator(), call);
      auto* const next = call.getNextNode();
      if (call.isMustTailCall() || llvm::isa<llvm::ReturnInst>(next)) return;
      if (llvm::isa<llvm::UnreachableInst>(next)) {  // it always fails
        llvm::IRBuilder<> builder(next);
        leave(builder, &call, function);
        next->eraseFromParent();
        return;
      }
      check_before(*next, call);
    });
  }

  void check_before(llvm::Instruction& at, const llvm::CallBase& call) {
    llvm::IRBuilder<> builder(&at);
    auto* const leaving = builder.CreateIsNotNull(builder.CreateLoad(builder.getInt8Ty(), flag(builder)));
    auto* const unlikely = llvm::MDBuilder(module_.getContext()).createUnlikelyBranchWeights();
    auto* const gone = llvm::SplitBlockAndInsertIfThen(leaving, &at, true, unlikely);
    builder.SetInsertPoint(gone);
    leave(builder, &call, *call.getFunction());
    gone->eraseFromParent();
  }

  void fail_at(const Failure& failure) {
    auto& function = *failure.call->getFunction();
    auto* const block = failure.call->getParent();
    llvm::changeToUnreachable(failure.call);
    auto* const end = block->getTerminator();
    llvm::IRBuilder<> builder(end);
    const auto tc_fail =
        module_.getOrInsertFunction("tc_fail", builder.getVoidTy(), builder.getInt32Ty(), builder.getPtrTy());
    auto* const message = builder.CreateGlobalString(failure.message, "tc.failure");
    builder.CreateCall(tc_fail, {builder.getInt32(static_cast<uint32_t>(failure.code)), message});
    if (!is_entry(function) || called(function)) builder.CreateStore(builder.getInt8(1), flag(builder));
    leave(builder, failure.call, function);
    end->eraseFromParent();
  }

  // What was true of a function, and of the calls to it, while its failures did not return.
  void forget_promises(llvm::Function& function) {
    static constexpr llvm::Attribute::AttrKind of_functions[] = {
        llvm::Attribute::NoReturn,   llvm::Attribute::Memory,      llvm::Attribute::NoFree,
        llvm::Attribute::NoSync,     llvm::Attribute::NoRecurse,   llvm::Attribute::WillReturn,
        llvm::Attribute::NoCallback, llvm::Attribute::Speculatable};
    const auto forget = [&](auto& owner) {
      auto list = owner.getAttributes();
      auto& context = module_.getContext();
      for (const auto kind : of_functions) list = list.removeFnAttribute(context, kind);
      list = list.removeRetAttributes(context, llvm::AttributeMask(list.getRetAttrs()));
      for (unsigned i = 0; i < function.arg_size(); ++i)
        for (const auto kind : {llvm::Attribute::Returned, llvm::Attribute::Initializes})
          list = list.removeParamAttribute(context, i, kind);
      owner.setAttributes(list);
    };
    // zeroext and signext are the calling convention, and no promise.
    const bool zero = function.hasRetAttribute(llvm::Attribute::ZExt);
    const bool sign = function.hasRetAttribute(llvm::Attribute::SExt);
    const auto forget_and_keep_convention = [&](auto& owner) {
      forget(owner);
      if (zero) owner.addRetAttr(llvm::Attribute::ZExt);
      if (sign) owner.addRetAttr(llvm::Attribute::SExt);
    };
    forget_and_keep_convention(function);
    for (auto* const user : function.users())
      if (auto* const call = llvm::dyn_cast<llvm::CallBase>(user); call && call->getCalledFunction() == &function) {
        forget_and_keep_convention(*call);
        for (const auto kind : {llvm::LLVMContext::MD_range, llvm::LLVMContext::MD_nonnull,
                                llvm::LLVMContext::MD_noundef, llvm::LLVMContext::MD_align})
          call->setMetadata(kind, nullptr);
      }
  }

  void start_without_failure() {
    if (!tc_leaving_) return;
    for (const auto& name : entries_) {
      auto* const entry = module_.getFunction(name);
      if (!entry || entry->isDeclaration() || !failing_.contains(entry)) continue;
      llvm::IRBuilder<> builder(&*entry->getEntryBlock().getFirstInsertionPt());
      builder.CreateStore(builder.getInt8(0), flag(builder));
    }
  }

  llvm::Module& module_;
  const std::vector<std::string>& entries_;
  Functions failing_;
  std::map<const llvm::CallBase*, std::vector<llvm::Value*>> open_;  // guards of initialisers that go on at a call
  bool escaped_ = false;  // a function that can fail may be called through its address
  llvm::FunctionCallee tc_leaving_;
};

}  // namespace

void leave_entries_at(llvm::Module& module, const std::vector<Failure>& failures,
                      const std::vector<std::string>& entries) {
  Leaver(module, entries).run(failures);
}

}  // namespace tc::toolchain
