// SPDX-License-Identifier: Apache-2.0
//
// Bitcode for one triple, made into bitcode for another: for front ends that cannot cross-compile. Sound only for
// code that says nothing about its CPU or its calling convention; the rest is refused, by name and place.
#include <llvm/IR/CallingConv.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/TypeFinder.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <memory>
#include <set>

#include "toolchain/codegen.h"
#include "toolchain/importer.h"
#include "toolchain/resolve.h"

namespace tc::toolchain {

namespace {

std::string words(const llvm::Type& type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

class Retargeter {
 public:
  Retargeter(llvm::Module& module, const std::string& to, const std::string& label)
      : module_(module), from_(module.getTargetTriple().str()), to_(to), label_(label) {}

  Status run() {
    TC_CHECK(find_layout());
    TC_CHECK(check_module());
    for (const auto& global : module_.globals()) TC_CHECK(check_type(*global.getValueType(), label_));
    for (const auto& function : module_) TC_CHECK(check_function(function));
    settle();
    return {};
  }

 private:
  // "foo.ll: is bitcode for x86_64-..., and cannot be made into aarch64-...: WHY; what to do"
  std::unexpected<Error> refuse(const std::string& where, const std::string& why) const {
    return fail(TC_ERR_INVALID,
                "{}: is bitcode for {}, and cannot be made into {}: {}; leave that out, have its front end emit "
                "bitcode for {}, or build for {} alone",
                where, from_, to_, why, to_, from_);
  }

  Status find_layout() {
    TC_CHECK(check_triple(to_));
    std::string complaint;
    const llvm::Triple triple(normalised_triple(to_));
    const auto* const target = llvm::TargetRegistry::lookupTarget(triple, complaint);
    const std::unique_ptr<llvm::TargetMachine> machine(
        target ? target->createTargetMachine(triple, "", "", {}, llvm::Reloc::PIC_) : nullptr);
    if (!machine) return fail(TC_ERR_INVALID, "{}: LLVM has no machine for {}: {}", label_, to_, complaint);
    layout_ = std::make_unique<llvm::DataLayout>(machine->createDataLayout());
    triple_ = triple;
    return {};
  }

  Status check_module() const {
    const auto& own = module_.getDataLayout();
    if (!own.isLittleEndian() || own.getPointerSizeInBits() != 64)
      return refuse(label_, "it is no 64-bit little-endian code");
    if (llvm::Triple(normalised_triple(from_)).getOS() != triple_.getOS())
      return refuse(label_, "that is another operating system");
    if (!module_.getModuleInlineAsm().empty()) return refuse(label_, "it holds assembly");
    return {};
  }

  // Types that only some CPUs have, and structures that the two lay out in different ways.
  Status check_type(const llvm::Type& type, const std::string& where) {
    if (!checked_.insert(&type).second) return {};
    if (type.isX86_FP80Ty() || type.isX86_AMXTy() || type.isPPC_FP128Ty() || type.isTargetExtTy())
      return refuse(where, fmt::format("it uses the type {}{}, which only its own CPU has", words(type),
                                       type.isX86_FP80Ty() ? " (long double)" : ""));
    if (const auto* const pointer = llvm::dyn_cast<llvm::PointerType>(&type);
        pointer && pointer->getAddressSpace() != 0)
      return refuse(where, fmt::format("it uses pointers of address space {}", pointer->getAddressSpace()));
    for (const auto* const part : type.subtypes()) TC_CHECK(check_type(*part, where));
    auto* const structure = llvm::dyn_cast<llvm::StructType>(const_cast<llvm::Type*>(&type));
    if (structure && structure->isSized()) {
      const auto *here = module_.getDataLayout().getStructLayout(structure),
                 *there = layout_->getStructLayout(structure);
      bool same = here->getSizeInBytes() == there->getSizeInBytes();
      for (unsigned i = 0; same && i < structure->getNumElements(); ++i)
        same = here->getElementOffset(i) == there->getElementOffset(i);
      if (!same) return refuse(where, fmt::format("the structure {} has another layout there", words(type)));
    }
    return {};
  }

  Status check_function(const llvm::Function& function) {
    if (function.isIntrinsic()) return {};
    if (function.getCallingConv() >= llvm::CallingConv::FirstTargetCC)
      return refuse(label_, fmt::format("'{}' has a calling convention of its own CPU", function.getName().str()));
    for (const auto& block : function)
      for (const auto& instruction : block) TC_CHECK(check_instruction(instruction));
    return {};
  }

  Status check_instruction(const llvm::Instruction& instruction) {
    const auto where = position(instruction, label_);
    TC_CHECK(check_type(*instruction.getType(), where));
    for (const auto& operand : instruction.operands()) TC_CHECK(check_type(*operand->getType(), where));
    if (const auto* const slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
      TC_CHECK(check_type(*slot->getAllocatedType(), where));
    if (llvm::isa<llvm::VAArgInst>(instruction)) return refuse(where, "it takes a variable number of arguments");
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call ? check_call(*call, where) : Status{};
  }

  Status check_call(const llvm::CallBase& call, const std::string& where) {
    if (const auto* const assembly = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand()))
      return assembly->getAsmString().empty() ? Status{} : refuse(where, "it holds inline assembly");
    const auto* const callee = call.getCalledFunction();
    if (callee && callee->isTargetIntrinsic())
      return refuse(where, fmt::format("'{}' is an instruction of its own CPU", callee->getName().str()));
    if (callee && callee->getIntrinsicID() == llvm::Intrinsic::vastart)
      return refuse(where, "it takes a variable number of arguments");
    if (callee && callee->isIntrinsic()) return {};
    // Calls inside the module follow whatever convention both sides are compiled for.
    if (callee && !callee->isDeclaration() && callee->hasLocalLinkage()) return {};
    return check_convention(call, where);
  }

  // How C passes structures by value differs from CPU to CPU, and the front end has already spelt it out.
  Status check_convention(const llvm::CallBase& call, const std::string& where) const {
    const auto* const callee = call.getCalledFunction();
    const auto name =
        callee ? fmt::format("'{}'", callee->getName().str()) : std::string("a function pointer's target");
    const auto by_value = [&](const llvm::Type* type, const char* how) {
      const auto size = type && type->isSized()
                            ? module_.getDataLayout().getTypeAllocSize(const_cast<llvm::Type*>(type)).getFixedValue()
                            : 0;
      return refuse(where, fmt::format("{} {} a structure of {} bytes by value, which each CPU does in its own way; "
                                       "pass a pointer",
                                       name, how, size));
    };
    const auto is_aggregate = [](const llvm::Type* type) { return type->isAggregateType() || type->isVectorTy(); };
    if (is_aggregate(call.getType())) return by_value(call.getType(), "returns");
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      if (call.paramHasAttr(i, llvm::Attribute::StructRet)) return by_value(call.getParamStructRetType(i), "returns");
      if (call.paramHasAttr(i, llvm::Attribute::ByVal)) return by_value(call.getParamByValType(i), "takes");
      if (is_aggregate(call.getArgOperand(i)->getType())) return by_value(call.getArgOperand(i)->getType(), "takes");
    }
    return {};
  }

  // RISC-V wants every 32-bit argument and result sign-extended, of numbers without a sign as well; x86-64 and AArch64 do not
  // care. A function that is defined here may be called from elsewhere, by its address.
  static void extend_for_riscv(auto& owner, const llvm::FunctionType& type) {
    const auto is_int = [](const llvm::Type* part) { return part->isIntegerTy(32); };
    if (is_int(type.getReturnType())) {
      owner.removeRetAttr(llvm::Attribute::ZExt);
      owner.addRetAttr(llvm::Attribute::SExt);
    }
    for (unsigned i = 0; i < type.getNumParams(); ++i) {
      if (!is_int(type.getParamType(i))) continue;
      owner.removeParamAttr(i, llvm::Attribute::ZExt);
      owner.addParamAttr(i, llvm::Attribute::SExt);
    }
  }

  void extend_all_for_riscv() {
    for (auto& function : module_) {
      if (function.isIntrinsic()) continue;
      extend_for_riscv(function, *function.getFunctionType());
      for (auto& block : function)
        for (auto& instruction : block)
          if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
              call && !call->isInlineAsm() && !llvm::isa<llvm::IntrinsicInst>(call))
            extend_for_riscv(*call, *call->getFunctionType());
    }
  }

  void settle() {
    strip_cpu(module_);
    if (triple_.isRISCV()) extend_all_for_riscv();
    module_.setTargetTriple(triple_);
    module_.setDataLayout(*layout_);
  }

  llvm::Module& module_;
  std::string from_;
  const std::string& to_;
  const std::string& label_;
  llvm::Triple triple_;
  std::unique_ptr<llvm::DataLayout> layout_;
  std::set<const llvm::Type*> checked_;
};

}  // namespace

Status retarget(llvm::Module& module, const std::string& triple, const std::string& label) {
  return Retargeter(module, triple, label).run();
}

}  // namespace tc::toolchain
