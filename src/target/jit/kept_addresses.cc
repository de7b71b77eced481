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

bool compares_memory(const llvm::Function& function) {
  return function.isDeclaration() && (function.getName() == "memcmp" || function.getName() == "bcmp");
}

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
  bool is_number() const noexcept { return is_number_; }

 private:
  void keep(Kind kind) noexcept { (kind == Kind::address ? is_stored_ : is_table_stored_) = true; }

  void follow(const llvm::Use& use, Kind kind) {
    const auto* const user = use.getUser();
    is_number_ |= kind == Kind::address && llvm::isa<llvm::PtrToIntOperator>(user);
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

  // It stands in the variable from the start. A constant that others can name is shared by all compilations, as a variable is,
  // and the one there holds the addresses of the first. It can be followed all the same, for nothing else is stored there.
  void follow_into(const llvm::GlobalVariable& variable, Kind kind) {
    if (!variable.isConstant()) return keep(kind);
    if (!variable.hasLocalLinkage()) keep(Kind::table);
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
    if (compares_memory(*callee)) {
      is_compared_ |= kind == Kind::table;
      return;
    }
    // Any other library compares no addresses of code for us, but may copy what it is shown.
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
  bool is_number_ = false;
};

bool keeps_labels(const llvm::Module& module) {
  AddressFlow flow;
  for (const auto& function : module)
    for (const auto& block : function)
      if (const auto* const label = llvm::BlockAddress::lookup(&block)) flow.add(*label);
  flow.run();
  return flow.is_stored() || flow.is_table_stored();
}

// Whether the language says that it reads a number. It does not where memory is compared or copied, nor in a union.
bool reads_number(const llvm::LoadInst& load) {
  const auto* const tag = load.getMetadata(llvm::LLVMContext::MD_tbaa);
  if (!load.getType()->isIntegerTy() || tag == nullptr || tag->getNumOperands() < 2) return false;
  const auto* const type = llvm::dyn_cast_or_null<llvm::MDNode>(tag->getOperand(1).get());
  if (type == nullptr || type->getNumOperands() == 0) return false;
  const auto* const name = llvm::dyn_cast_or_null<llvm::MDString>(type->getOperand(0).get());
  return name != nullptr && name->getString() != "omnipotent char";
}

// What is looked at to judge one value. Where that is not enough, it counts as a stored function.
constexpr size_t most_steps = 32;

// Whether it may be the address of a function that was stored, as a pointer or as a number. Places inside of something are
// data, and so is what was just made. Null says nothing. `as_numbers`: addresses were made numbers.
bool may_be_stored_function(const llvm::Value* value, bool as_numbers) {
  std::vector<const llvm::Value*> all{value};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto* const one = all[i];
    if (llvm::isa<llvm::UndefValue>(one)) continue;
    if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(one)) {
      if (!as_numbers && reads_number(*load)) return false;
      continue;
    }
    if (const auto* const constant = llvm::dyn_cast<llvm::Constant>(one);
        constant != nullptr && constant->isNullValue())
      continue;
    if (one->getType()->isPointerTy()) {
      if (llvm::isa<llvm::Argument>(one)) continue;
      if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(one); call != nullptr && !call->returnDoesNotAlias())
        continue;
    }
    if (!llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::FreezeInst, llvm::PtrToIntInst, llvm::IntToPtrInst>(one))
      return false;
    const auto* const instruction = llvm::cast<llvm::Instruction>(one);
    if (all.size() + instruction->getNumOperands() > most_steps) return true;
    for (const auto* const from : instruction->operand_values()) {
      if (from->getType()->isIntegerTy(1)) continue;  // what a select goes by
      if (std::ranges::find(all, from) == all.end()) all.push_back(from);
    }
  }
  return true;
}

bool compares_stored_functions(const llvm::ICmpInst& compare, bool as_numbers) {
  const auto* const type = compare.getOperand(0)->getType();
  const auto width = compare.getModule()->getDataLayout().getPointerSizeInBits();
  if (!type->isPointerTy() && !type->isIntegerTy(width)) return false;
  const auto is_null = [](const llvm::Value* value) {
    const auto* const constant = llvm::dyn_cast<llvm::Constant>(value);
    return constant != nullptr && constant->isNullValue();
  };
  return std::ranges::none_of(compare.operands(), is_null) &&
         std::ranges::all_of(compare.operands(),
                             [&](const llvm::Value* value) { return may_be_stored_function(value, as_numbers); });
}

// Of memory in whole pointers, none of which is constant. Texts are of any size, or one is a constant.
bool compares_stored_functions(const llvm::CallBase& call) {
  const auto* const callee = call.getCalledFunction();
  if (callee == nullptr || !compares_memory(*callee) || call.arg_size() != 3) return false;
  const auto* const size = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(2));
  if (size == nullptr || size->getValue().urem(call.getModule()->getDataLayout().getPointerSize()) != 0) return false;
  const auto is_constant = [](const llvm::Value* value) {
    const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(llvm::getUnderlyingObject(value));
    return variable != nullptr && variable->isConstant();
  };
  return !is_constant(call.getArgOperand(0)) && !is_constant(call.getArgOperand(1));
}

bool compares_stored_functions(const llvm::Module& module, bool as_numbers) {
  for (const auto& function : module)
    for (const auto& block : function)
      for (const auto& instruction : block) {
        const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
        if (compare != nullptr && compares_stored_functions(*compare, as_numbers)) return true;
        const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        if (call != nullptr && compares_stored_functions(*call)) return true;
      }
  return false;
}

bool keeps_functions(const llvm::Module& module) {
  AddressFlow flow;
  for (const auto& function : module)
    if (!function.isDeclaration()) flow.add(function);
  flow.run();
  if (flow.is_stored()) return flow.is_compared() || compares_stored_functions(module, flow.is_number());
  return flow.is_table_stored() && flow.is_compared();
}

}  // namespace

bool keeps_code_addresses(const llvm::Module& module) { return keeps_labels(module) || keeps_functions(module); }

}  // namespace tc::target::jit
