// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer_strip.h"

#include <llvm/Analysis/CFG.h>
#include <llvm/IR/AttributeMask.h>
#include <llvm/IR/Attributes.h>
#include <llvm/IR/CallingConv.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstrTypes.h>
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
#include "toolchain/importer_check.h"
#include "toolchain/resolve.h"

namespace tc::toolchain {

namespace {

// String attributes that say what the code means. All others say how one CPU likes it; the target knows better.
bool has_meaning(llvm::StringRef attribute) {
  return attribute.starts_with("no-builtin") || attribute.starts_with("denormal-fp-math") || attribute == "strictfp" ||
         attribute.starts_with("alloc-");
}

// What a definition's own optimiser finds out again from its body. `noalias`, alignment, calling convention and
// whatever else the author said, or the body does not show, stays.
constexpr llvm::Attribute::AttrKind inferred_of_functions[] = {
    llvm::Attribute::Memory,     llvm::Attribute::NoFree,     llvm::Attribute::NoRecurse,   llvm::Attribute::NoSync,
    llvm::Attribute::WillReturn, llvm::Attribute::NoCallback, llvm::Attribute::MustProgress};
constexpr llvm::Attribute::AttrKind inferred_of_values[] = {
    llvm::Attribute::ReadNone,    llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly, llvm::Attribute::Captures,
    llvm::Attribute::Initializes, llvm::Attribute::NoFree,   llvm::Attribute::NoUndef};

llvm::AttributeList without_strings(llvm::LLVMContext& context, llvm::AttributeList list) {
  llvm::AttributeMask dropped;
  for (const auto attribute : list.getFnAttrs())
    if (attribute.isStringAttribute() && !has_meaning(attribute.getKindAsString())) dropped.addAttribute(attribute);
  return list.removeFnAttributes(context, dropped);
}

llvm::AttributeList without_inferred(llvm::LLVMContext& context, llvm::AttributeList list, size_t parameters) {
  for (const auto kind : inferred_of_functions) list = list.removeFnAttribute(context, kind);
  for (const auto kind : inferred_of_values) {
    list = list.removeRetAttribute(context, kind);
    for (unsigned i = 0; i < parameters; ++i) list = list.removeParamAttribute(context, i, kind);
  }
  return list;
}

template <class Visit>
void for_each_call(llvm::Module& module, Visit visit) {
  for (auto& function : module)
    for (auto& block : function)
      for (auto& instruction : block)
        if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction)) visit(*call);
}

void strip_attributes(llvm::Module& module, bool unwinds) {
  auto& context = module.getContext();
  for (auto& function : module) {
    if (function.isIntrinsic()) {  // LLVM's reader knows them by heart
      function.setAttributes({});
      continue;
    }
    auto list = without_strings(context, function.getAttributes());
    // What describe_abi() said has done its work.
    if (!function.isDeclaration() || is_ifunc_abi(function.getName().str()))
      list = without_inferred(context, list, function.arg_size());
    if (!unwinds) list = list.removeFnAttribute(context, llvm::Attribute::UWTable);
    function.setAttributes(list);
    // Where nothing is thrown, nothing is unwound: no tables for it.
    if (!unwinds && !function.isDeclaration()) function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  for_each_call(module, [&](llvm::CallBase& call) {
    auto list = without_strings(context, call.getAttributes()).removeRetAttribute(context, llvm::Attribute::NoUndef);
    for (unsigned i = 0; i < call.arg_size(); ++i)
      list = list.removeParamAttribute(context, i, llvm::Attribute::NoUndef);
    call.setAttributes(list);
  });
}

bool has_loop(const llvm::Module& module) {
  for (const auto& function : module) {
    if (function.isDeclaration()) continue;
    llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 8> back_edges;
    llvm::FindFunctionBackedges(function, back_edges);
    if (!back_edges.empty()) return true;
  }
  return false;
}

// Loops are where knowing what does not alias, and what the author asked for, pays at the target; elsewhere it
// costs more bytes than it saves time.
void strip_metadata(llvm::Module& module) {
  const bool keep_for_loops = has_loop(module);
  const auto kept = [&](unsigned kind) {
    if (!keep_for_loops) return false;
    return kind == llvm::LLVMContext::MD_tbaa || kind == llvm::LLVMContext::MD_tbaa_struct ||
           kind == llvm::LLVMContext::MD_loop || kind == llvm::LLVMContext::MD_alias_scope ||
           kind == llvm::LLVMContext::MD_noalias || kind == llvm::LLVMContext::MD_access_group ||
           kind == llvm::LLVMContext::MD_prof;
  };
  llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 8> found;
  for (auto& function : module) {
    function.clearMetadata();
    for (auto& block : function)
      for (auto& instruction : block) {
        found.clear();
        instruction.getAllMetadata(found);
        for (const auto& [kind, node] : found)
          if (!kept(kind)) instruction.setMetadata(kind, nullptr);
      }
  }
  for (auto& global : module.globals()) global.clearMetadata();
}

// Module flags tell a linker how to combine modules. A target links nothing to this one, but needs its ABI's name.
void strip_module_metadata(llvm::Module& module) {
  llvm::Metadata* abi = module.getModuleFlag("target-abi");
  const auto* const abi_name = llvm::dyn_cast_or_null<llvm::MDString>(abi);
  const std::string kept = abi_name ? abi_name->getString().str() : "";
  for (auto& node : llvm::make_early_inc_range(module.named_metadata())) module.eraseNamedMetadata(&node);
  if (!kept.empty())
    module.addModuleFlag(llvm::Module::Error, "target-abi", llvm::MDString::get(module.getContext(), kept));
}

void strip_names(llvm::Module& module) {
  for (auto& value : module.global_values())
    if (value.hasLocalLinkage()) value.setName("");
  for (auto& function : module) {
    for (auto& argument : function.args()) argument.setName("");
    for (auto& block : function) {
      block.setName("");
      for (auto& instruction : block) instruction.setName("");
    }
  }
  llvm::TypeFinder types;
  types.run(module, true);
  for (auto* const type : types) type->setName("");
  module.setSourceFileName("");
}

}  // namespace

void strip_cpu(llvm::Module& module) {
  auto& context = module.getContext();
  for (auto& function : module) function.setAttributes(without_strings(context, function.getAttributes()));
  for_each_call(module,
                [&](llvm::CallBase& call) { call.setAttributes(without_strings(context, call.getAttributes())); });
}

void strip_for_travel(llvm::Module& module, bool unwinds) {
  llvm::StripDebugInfo(module);
  strip_attributes(module, unwinds);
  strip_metadata(module);
  strip_module_metadata(module);
  strip_names(module);
}

namespace {

std::string words(const llvm::Type& type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

// Refuses all that only the module's own CPU or calling convention can do, then names the other triple.
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
