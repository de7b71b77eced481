// SPDX-License-Identifier: Apache-2.0
#include "target/jit/kept_addresses.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace tc::target::jit {

namespace {

// Follows addresses from where they are named to all that they become.
class AddressFlow {
 public:
  // What a value is: such an address, or that of memory which holds one.
  enum class Kind : uint8_t { address, table };

  void add(const llvm::Value& value, Kind kind = Kind::address) {
    if (seen_.emplace(&value, kind).second) waiting_.emplace_back(&value, kind);
  }
  void run() {
    while (!waiting_.empty()) {
      const auto [value, kind] = waiting_.back();
      waiting_.pop_back();
      for (const auto& use : value->uses()) follow(use, kind);
    }
  }
  bool is_stored() const noexcept { return is_stored_; }
  bool is_table_stored() const noexcept { return is_table_stored_; }
  bool is_compared() const noexcept { return is_compared_; }

 private:
  void keep(Kind kind) noexcept { (kind == Kind::address ? is_stored_ : is_table_stored_) = true; }

  void follow(const llvm::Use& use, Kind kind) {
    const auto* const user = use.getUser();
    if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(user)) return follow_into(*variable, kind);
    if (llvm::isa<llvm::GlobalValue>(user)) return;  // a personality routine, an alias
    if (llvm::isa<llvm::Constant>(user)) return add(*user, kind);
    if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(user)) return follow_load(*load, kind);
    if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(user)) return follow_store(*store, use, kind);
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(user)) return follow_call(*call, use, kind);
    if (const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(user)) return follow_compare(*compare, kind);
    if (llvm::isa<llvm::IndirectBrInst, llvm::SwitchInst>(user)) return;
    if (llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::FreezeInst, llvm::CastInst, llvm::GetElementPtrInst,
                  llvm::BinaryOperator, llvm::InsertValueInst, llvm::ExtractValueInst, llvm::InsertElementInst,
                  llvm::ExtractElementInst>(user))
      return add(*user, kind);
    keep(kind);
  }

  // It stands in the variable from the start.
  void follow_into(const llvm::GlobalVariable& variable, Kind kind) {
    if (!variable.isConstant()) return keep(kind);
    add(variable, Kind::table);
  }

  void follow_load(const llvm::LoadInst& load, Kind kind) {
    if (kind != Kind::table) return;
    add(load, Kind::address);
    add(load, Kind::table);
  }

  void follow_store(const llvm::StoreInst& store, const llvm::Use& use, Kind kind) {
    if (use.getOperandNo() == llvm::StoreInst::getPointerOperandIndex()) return;
    store_into(*store.getPointerOperand(), kind);
  }

  // A local variable is a table that goes with the call.
  void store_into(const llvm::Value& where, Kind kind) {
    const auto* const object = llvm::getUnderlyingObject(&where);
    if (!llvm::isa<llvm::AllocaInst>(object)) return keep(kind);
    add(*object, Kind::table);
  }

  void follow_call(const llvm::CallBase& call, const llvm::Use& use, Kind kind) {
    if (!call.isArgOperand(&use)) return;  // it is what is called
    const auto number = call.getArgOperandNo(&use);
    if (const auto* const copy = llvm::dyn_cast<llvm::MemTransferInst>(&call)) {
      if (number == 1 && kind == Kind::table) store_into(*copy->getRawDest(), Kind::address);
      return;
    }
    const auto* const callee = call.getCalledFunction();
    if (callee == nullptr || (!callee->isDeclaration() && number >= callee->arg_size())) return keep(kind);
    if (!callee->isDeclaration()) return add(*callee->getArg(number), kind);
    // A library compares no addresses of code for us, but may copy what it is shown.
    if (kind == Kind::table && !callee->isIntrinsic()) keep(kind);
  }

  void follow_compare(const llvm::ICmpInst& compare, Kind kind) {
    const auto is_null = [](const llvm::Value* value) { return llvm::isa<llvm::ConstantPointerNull>(value); };
    if (kind == Kind::address && std::ranges::none_of(compare.operands(), is_null)) is_compared_ = true;
  }

  std::set<std::pair<const llvm::Value*, Kind>> seen_;
  std::vector<std::pair<const llvm::Value*, Kind>> waiting_;
  bool is_stored_ = false;
  bool is_table_stored_ = false;
  bool is_compared_ = false;
};

bool keeps_labels(const llvm::Module& module) {
  AddressFlow flow;
  for (const auto& function : module)
    for (const auto& block : function)
      if (const auto* const label = llvm::BlockAddress::lookup(&block)) flow.add(*label);
  flow.run();
  return flow.is_stored() || flow.is_table_stored();
}

// Whether it may be the address of a function that was stored. Places inside of something are data, and so is what was just made.
bool may_be_stored_function(const llvm::Value* value, std::set<const llvm::Value*>& seen) {
  if (!seen.insert(value).second || llvm::isa<llvm::LoadInst, llvm::Argument>(value)) return true;
  if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(value)) return !call->returnDoesNotAlias();
  if (!llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::FreezeInst>(value)) return false;
  const auto* const instruction = llvm::cast<llvm::Instruction>(value);
  return std::ranges::all_of(instruction->operands(), [&](const llvm::Value* one) {
    return !one->getType()->isPointerTy() || may_be_stored_function(one, seen);
  });
}

bool compares_stored_functions(const llvm::Module& module) {
  for (const auto& function : module)
    for (const auto& block : function)
      for (const auto& instruction : block) {
        const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
        if (compare == nullptr || !compare->getOperand(0)->getType()->isPointerTy()) continue;
        const auto may_be = [](const llvm::Value* value) {
          std::set<const llvm::Value*> seen;
          return may_be_stored_function(value, seen);
        };
        if (std::ranges::all_of(compare->operands(), may_be)) return true;
      }
  return false;
}

bool keeps_functions(const llvm::Module& module) {
  AddressFlow flow;
  for (const auto& function : module)
    if (!function.isDeclaration()) flow.add(function);
  flow.run();
  if (flow.is_stored()) return flow.is_compared() || compares_stored_functions(module);
  return flow.is_table_stored() && flow.is_compared();
}

}  // namespace

bool keeps_code_addresses(const llvm::Module& module) { return keeps_labels(module) || keeps_functions(module); }

}  // namespace tc::target::jit
