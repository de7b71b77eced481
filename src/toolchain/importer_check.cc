// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer_check.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "wire/object_format.h"

namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

// Numbers that libraries use as marks, never as addresses: (void*)-1 and its like. The first page is never mapped,
// the last one neither.
bool is_mark(const llvm::ConstantInt& value) {
  return value.getBitWidth() <= 64 && value.getSExtValue() > -4096 && value.getSExtValue() < 4096;
}

// The integer that `value` makes a pointer of, anywhere inside it; null when there is none.
const llvm::ConstantInt* literal_address(const llvm::Value* value, std::set<const llvm::Value*>& seen) {
  if (!llvm::isa<llvm::Constant>(value) || !seen.insert(value).second) return nullptr;
  if (const auto* const expression = llvm::dyn_cast<llvm::ConstantExpr>(value);
      expression && expression->getOpcode() == llvm::Instruction::IntToPtr)
    if (const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(expression->getOperand(0));
        number && !is_mark(*number))
      return number;
  if (llvm::isa<llvm::GlobalValue>(value)) return nullptr;
  // The same in disguise: a constant distance from the null pointer.
  if (const auto* const element = llvm::dyn_cast<llvm::GEPOperator>(value);
      element && llvm::isa<llvm::ConstantPointerNull>(element->getPointerOperand()))
    for (const auto& index : element->indices())
      if (const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(index.get()); number && !is_mark(*number))
        return number;
  for (const auto& operand : llvm::cast<llvm::Constant>(value)->operands())
    if (const auto* const found = literal_address(operand.get(), seen)) return found;
  return nullptr;
}

std::unexpected<Error> refuse_address(const std::string& where, const llvm::ConstantInt& number) {
  return fail(TC_ERR_INVALID,
              "{}: address {:#x} is written into the code, which means nothing in another process; get "
              "the data by name with tc_data(), or call the function by its name",
              where, number.getZExtValue());
}

// Code that was lowered for one CPU and then named another's (retargeted): LLVM would stop at what that one lacks.
struct OwnIntrinsics {
  const char* prefix;
  llvm::Triple::ArchType arch;
};
constexpr OwnIntrinsics own_intrinsics[] = {{"llvm.x86.", llvm::Triple::x86_64},
                                            {"llvm.aarch64.", llvm::Triple::aarch64},
                                            {"llvm.riscv.", llvm::Triple::riscv64},
                                            {"llvm.nvvm.", llvm::Triple::nvptx64}};

std::unexpected<Error> refuse_other_cpu(const std::string& where, const std::string& what, const llvm::Module& module) {
  return fail(
      TC_ERR_INVALID,
      "{}: '{}' is another CPU's, and {} does not have it; use plain operations and 64-bit floats, or build for "
      "the CPU that has it alone",
      where, what, module.getTargetTriple().str());
}

Status check_cpu(const llvm::Instruction& instruction, const ImportOptions& options) {
  const auto& module = *instruction.getModule();
  const auto arch = module.getTargetTriple().getArch();
  if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && call->getCalledFunction())
    for (const auto& own : own_intrinsics)
      if (const auto name = call->getCalledFunction()->getName(); name.starts_with(own.prefix) && arch != own.arch)
        return refuse_other_cpu(position(instruction, options.label), name.str(), module);
  const auto is_x86 = [](const llvm::Type* type) { return type->isX86_FP80Ty() || type->isX86_AMXTy(); };
  bool found = is_x86(instruction.getType()->getScalarType());
  for (const auto& operand : instruction.operands()) found = found || is_x86(operand->getType()->getScalarType());
  if (found && arch != llvm::Triple::x86_64)
    return refuse_other_cpu(position(instruction, options.label), "x86_fp80", module);
  return {};
}

Status check_instruction(const llvm::Instruction& instruction, const ImportOptions& options) {
  TC_CHECK(check_cpu(instruction, options));
  std::set<const llvm::Value*> seen;
  for (const auto& operand : instruction.operands())
    if (const auto* const number = literal_address(operand.get(), seen))
      return refuse_address(position(instruction, options.label), *number);
  if (const auto* const cast = llvm::dyn_cast<llvm::IntToPtrInst>(&instruction))
    if (const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(cast->getOperand(0)); number && !is_mark(*number))
      return refuse_address(position(instruction, options.label), *number);
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  const auto* const assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  if (assembly && !assembly->getAsmString().empty() && !options.allow_asm)
    return fail(TC_ERR_INVALID,
                "{}: inline assembly '{}' is for one kind of CPU only and cannot be checked; use a "
                "compiler builtin, or give --allow-asm",
                position(instruction, options.label), assembly->getAsmString().substr(0, 40).str());
  return {};
}

Status check_function(const llvm::Function& function, const ImportOptions& options) {
  for (const auto& block : function)
    for (const auto& instruction : block) TC_CHECK(check_instruction(instruction, options));
  return {};
}

// The instructions that use `value`, through constants too. None when only data refers to it.
void collect_uses(const llvm::Value& value, std::vector<const llvm::Instruction*>& uses, unsigned depth = 0) {
  for (const auto* const user : value.users()) {
    if (const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(user)) uses.push_back(instruction);
    if (depth < 8 && llvm::isa<llvm::Constant>(user)) collect_uses(*user, uses, depth + 1);
  }
}

// In a file of the language's own library, which its compiler has put in line here.
bool is_library_code(const llvm::DILocation& location) {
  return location.getDirectory().starts_with("/rustc/") || location.getFilename().starts_with("/rustc/") ||
         location.getFilename().contains("/lib/rustlib/") || location.getFilename().starts_with("library/") ||
         location.getFilename().starts_with("/usr/");
}

// The author's line: not that in a library's function which its compiler has put in line. Null without positions.
const llvm::DILocation* location_of(const llvm::Instruction& at) {
  const llvm::DILocation* location = at.getDebugLoc().get();
  // Line 0 is what a compiler itself put there, as the checks of sanitizers.
  while (location && location->getInlinedAt() && (is_library_code(*location) || location->getLine() == 0))
    location = location->getInlinedAt();
  return location && location->getLine() != 0 ? location : nullptr;
}

// As an editor finds it that was started here: relative below the current directory, else absolute. Compilers split paths as
// they like.
std::string file_of(const llvm::DILocation& location) {
  auto file = fs::path(location.getFilename().str());
  if (file.is_relative()) file = fs::path(location.getDirectory().str()) / file;
  file = file.lexically_normal();
  std::error_code error;
  const auto from_here = file.lexically_relative(fs::current_path(error));
  const bool is_below = !error && file.is_absolute() && !from_here.empty() && *from_here.begin() != "..";
  return is_below ? from_here.string() : file.string();
}

// Where the author uses `value`; the file alone when that is not known. For what a library's function uses that is not
// in line, where the author calls that function.
std::string position_of_use(const llvm::Value& value, const std::string& label, unsigned depth = 0) {
  std::vector<const llvm::Instruction*> uses;
  collect_uses(value, uses);
  if (uses.empty()) return label;
  for (const auto* const use : uses)
    if (const auto* const location = location_of(*use); location && !is_library_code(*location))
      return position(*use, label);
  if (depth < 4)
    for (const auto* const use : uses)
      if (const auto caller = position_of_use(*use->getFunction(), label, depth + 1); caller != label) return caller;
  return position(*uses.front(), label);
}

// The author's first line in what a list of constructors calls.
std::string position_of_list(const llvm::GlobalVariable& list, const std::string& label) {
  for (const auto& entry : list.getInitializer()->operands()) {
    const auto* const function = llvm::dyn_cast<llvm::Function>(
        llvm::cast<llvm::Constant>(entry.get())->getAggregateElement(1u)->stripPointerCasts());
    if (!function) continue;
    for (const auto& block : *function)
      for (const auto& instruction : block)
        if (const auto where = position(instruction, label); where != label) return where;
  }
  return label;
}

Status check_global(const llvm::GlobalVariable& global, const ImportOptions& options) {
  const auto name = global.getName().str();
  if (global.isThreadLocal())
    return fail(TC_ERR_INVALID,
                "{}: '{}' is thread-local, which injected code cannot have (it has no say in when threads "
                "start); keep it in the payload or in the target's data",
                position_of_use(global, options.label), llvm::demangle(name));
  if (!global.hasInitializer()) return {};
  if ((name == "llvm.global_ctors" || name == "llvm.global_dtors") && !options.allow_ctors) {
    if (global.getInitializer()->isNullValue()) return {};
    return fail(TC_ERR_INVALID,
                "{}: {} would have to run before or after the ifunc (a global object, or "
                "__attribute__(({})): nothing runs it at the target; initialise in {}_main, make it constexpr, or give "
                "--allow-ctors, and the first call runs the constructors",
                position_of_list(global, options.label),
                name == "llvm.global_ctors" ? "a static constructor" : "a static destructor",
                name == "llvm.global_ctors" ? "constructor)" : "destructor)", options.name);
  }
  std::set<const llvm::Value*> seen;
  if (const auto* const number = literal_address(global.getInitializer(), seen))
    return refuse_address(fmt::format("{}: in '{}'", position_of_use(global, options.label), llvm::demangle(name)),
                          *number);
  return {};
}

// A node has so much room for the variables of one ifunc.
Status check_size_of_variables(const llvm::Module& module, const ImportOptions& options) {
  uint64_t total = 0, most = 0;
  const llvm::GlobalVariable* largest = nullptr;
  for (const auto& global : module.globals()) {
    if (global.isDeclaration() || global.isConstant()) continue;
    const uint64_t size = module.getDataLayout().getTypeAllocSize(global.getValueType());
    total += size;
    if (size >= most) most = size, largest = &global;
  }
  if (total <= object_format::image_half) return {};
  return fail(
      TC_ERR_TOO_LARGE,
      "{}: its variables are {} bytes, of which '{}' is {}, when a node takes at most {}; expose the node's own "
      "memory by a name (tc_data), or allocate it",
      position_of_use(*largest, options.label), total, llvm::demangle(largest->getName().str()), most,
      object_format::image_half);
}

bool resolved_by_the_backend(const llvm::GlobalValue& value) {
  const auto* const function = llvm::dyn_cast<llvm::Function>(&value);
  return (function && function->isIntrinsic()) || value.getName().starts_with("llvm.");
}

}  // namespace

std::string position(const llvm::Instruction& at, const std::string& label) {
  const auto* const location = location_of(at);
  if (!location) return label;
  return fmt::format("{}:{}", file_of(*location), location->getLine());
}

std::string position_of_author(const llvm::Instruction& at, const std::string& label) {
  const auto* const location = location_of(at);
  const auto& function = *at.getFunction();
  if (!location || !is_library_code(*location) || !function.hasOneUse()) return position(at, label);
  const auto* const call = llvm::dyn_cast<llvm::Instruction>(*function.user_begin());
  return call && call->getFunction() != &function ? position(*call, label) : position(at, label);
}

Status check_sections(const llvm::Module& module, const ImportOptions& options) {
  for (const auto& global : module.globals())
    for (const llvm::StringRef list : {".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors"})
      if (!global.isDeclaration() && global.getSection().starts_with(list))
        return fail(
            TC_ERR_INVALID,
            "{}: '{}' stands in the section {}, whose functions a loader runs before or after a program: nothing "
            "runs them at the target; initialise in {}_main",
            options.label, llvm::demangle(global.getName().str()), list.str(), options.name);
  for (const auto& object : module.global_objects())
    for (const llvm::StringRef table : {".eh_frame", ".gcc_except_table", ".debug"})
      if (!object.isDeclaration() && object.getSection().starts_with(table))
        return fail(TC_ERR_INVALID, "{}: '{}' stands in the section {}, which is for compilers alone: nodes refuse it",
                    options.label, llvm::demangle(object.getName().str()), table.str());
  return {};
}

Status check_can_travel(const llvm::Module& module, const ImportOptions& options) {
  TC_CHECK(check_size_of_variables(module, options));
  if (!module.getModuleInlineAsm().empty() && !options.allow_asm)
    return fail(TC_ERR_INVALID,
                "{}: assembly at file scope is for one kind of CPU only and cannot be checked; write it in "
                "C, or give --allow-asm",
                options.label);
  for (const auto& indirect : module.ifuncs())
    return fail(TC_ERR_INVALID,
                "{}: '{}' is resolved by a function at load time (GNU ifunc), which no object loader of "
                "ours does; choose inside a plain function",
                options.label, indirect.getName().str());
  for (const auto& global : module.globals()) TC_CHECK(check_global(global, options));
  for (const auto& function : module) TC_CHECK(check_function(function, options));
  return {};
}

std::vector<Undefined> undefined_symbols(const llvm::Module& module, const std::string& label) {
  std::vector<Undefined> undefined;
  for (const auto& value : module.global_values()) {
    if (!value.isDeclaration() || resolved_by_the_backend(value) || value.use_empty()) continue;
    undefined.push_back({value.getName().str(), position_of_use(value, label), llvm::isa<llvm::Function>(value),
                         value.hasExternalWeakLinkage()});
  }
  std::sort(undefined.begin(), undefined.end(), [](const auto& a, const auto& b) { return a.symbol < b.symbol; });
  return undefined;
}

}  // namespace tc::toolchain
