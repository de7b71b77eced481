// SPDX-License-Identifier: Apache-2.0
#include "toolchain/importer_entries.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "toolchain/resolve.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

bool is_entry(llvm::StringRef name) {
  for (const char* entry :
       {abi_names::main, abi_names::payload_get_max_size, abi_names::payload_init, abi_names::payload_bound})
    if (name == entry) return true;
  return false;
}

// Can other ifuncs use what the library defines here?
bool is_for_others(const llvm::GlobalValue& value) {
  return !value.isDeclaration() && !value.hasLocalLinkage() && !value.hasAvailableExternallyLinkage() &&
         !value.hasHiddenVisibility() && !value.getName().starts_with("llvm.") &&
         !value.getName().starts_with(abi_names::payload_alignment) && !is_entry(value.getName());
}

// Every use of an alias becomes a use of what it stands for: entries written in Zig are aliases, and the object
// loader and older linkers then never see one. Those of a library are names for others, as C++ has two for a constructor.
void follow_aliases(llvm::Module& module, const ImportOptions& options) {
  for (auto& alias : llvm::make_early_inc_range(module.aliases())) {
    alias.replaceAllUsesWith(alias.getAliasee());
    const bool is_entry = alias.getName() == options.name + abi_names::main_suffix;
    if (!options.library || is_entry || !is_for_others(alias)) alias.eraseFromParent();
  }
}

llvm::Function* behind(llvm::GlobalValue* value) {
  if (auto* const alias = llvm::dyn_cast_or_null<llvm::GlobalAlias>(value))
    value = llvm::dyn_cast<llvm::GlobalValue>(alias->getAliasee()->stripPointerCasts());
  auto* const function = llvm::dyn_cast_or_null<llvm::Function>(value);
  return function && !function->isDeclaration() ? function : nullptr;
}

// The function called `name`, plain or as C++ mangles it (an author who forgot extern "C").
llvm::Function* find_function(llvm::Module& module, const std::string& name) {
  if (auto* const function = behind(module.getNamedValue(name))) return function;
  const auto mangled = fmt::format("_Z{}{}", name.size(), name);
  for (auto& function : module)
    if (!function.isDeclaration() && function.getName().starts_with(mangled) &&
        llvm::StringRef(llvm::demangle(function.getName().str())).starts_with(name + "("))
      return &function;
  return nullptr;
}

bool has_type(const llvm::Function& function, bool returns_void, std::string_view parameters) {
  const auto* const type = function.getFunctionType();
  if (type->isVarArg() || type->getNumParams() != parameters.size()) return false;
  if (returns_void != type->getReturnType()->isVoidTy()) return false;
  for (unsigned i = 0; i < parameters.size(); ++i) {
    const auto* const parameter = type->getParamType(i);
    if (parameters[i] == 'p' ? !parameter->isPointerTy() : !parameter->isIntegerTy(64)) return false;
  }
  return true;
}

// What the author may have meant instead of NAME_main.
std::string near_names(const llvm::Module& module, const std::string& wanted) {
  std::vector<std::pair<unsigned, std::string>> names;
  for (const auto& function : module) {
    if (function.isDeclaration() || function.hasLocalLinkage()) continue;
    const auto name = function.getName().str();
    const bool is_entry = llvm::StringRef(name).ends_with(abi_names::main_suffix) || name == "main";
    names.emplace_back(is_entry ? 0 : llvm::StringRef(name).edit_distance(wanted), name);
  }
  std::sort(names.begin(), names.end());
  if (names.size() > 3) names.resize(3);
  std::vector<std::string> quoted;
  for (const auto& [distance, name] : names) quoted.push_back("'" + llvm::demangle(name) + "'");
  if (quoted.empty()) return "it defines no functions at all";
  return fmt::format("it does define {}", fmt::join(quoted, ", "));
}

void rename(llvm::Module& module, llvm::Function& function, const char* symbol) {
  if (auto* const other = module.getNamedValue(symbol); other && other != &function) other->setName("");
  function.setName(symbol);
  function.setLinkage(llvm::GlobalValue::ExternalLinkage);
  function.setVisibility(llvm::GlobalValue::DefaultVisibility);
  function.setComdat(nullptr);
  function.setSection("");
}

struct EntryForm {
  const char* suffix;
  const char* symbol;
  Entry entry;
  bool returns_void;
  std::string_view parameters;
  const char* declaration;
};

constexpr EntryForm forms[] = {
    {abi_names::payload_get_max_size_suffix, abi_names::payload_get_max_size, entry_payload_get_max_size, false, "pi",
     "size_t {}_payload_get_max_size(void *source_args, size_t size)"},
    {abi_names::payload_bound_suffix, abi_names::payload_bound, entry_payload_bound, false, "pi",
     "size_t {}_payload_bound(void *source_args, size_t size)"},
    {abi_names::payload_init_suffix, abi_names::payload_init, entry_payload_init, false, "pipi",
     "int {}_payload_init(void *payload, size_t payload_size, void *source_args, size_t size)"},
    {abi_names::payload_init_suffix, abi_names::payload_init, entry_payload_init_2022, false, "pipp",
     "int {}_payload_init(void *source_args, size_t size, void *payload, size_t *payload_size)"},
};

Status check_pairs(uint8_t entries, const ImportOptions& options) {
  const auto& name = options.name;
  const auto missing = [&](const char* there, const char* wanted) {
    return fail(TC_ERR_INVALID,
                "{}: defines {}{} but no {}{}: both are needed to build a payload (or neither: then the "
                "source args are the payload)",
                options.label, name, there, name, wanted);
  };
  const bool old_form = entries & entry_payload_init;
  const bool new_form = entries & entry_payload_init_2022;
  if (old_form && !(entries & entry_payload_get_max_size)) return missing("_payload_init", "_payload_get_max_size");
  if (new_form && !(entries & entry_payload_bound)) return missing("_payload_init (2022 form)", "_payload_bound");
  if ((entries & entry_payload_get_max_size) && !old_form) return missing("_payload_get_max_size", "_payload_init");
  if ((entries & entry_payload_bound) && !new_form)
    return missing("_payload_bound", "_payload_init(source_args, size, payload, size_t *payload_size)");
  return {};
}

// An entry that does nothing, when a library defines none.
void ensure_main(llvm::Module& module, const ImportOptions& options) {
  const auto name = options.name + abi_names::main_suffix;
  if (!options.library || module.getNamedValue(name) != nullptr) return;
  auto& context = module.getContext();
  auto* const pointer = llvm::PointerType::getUnqual(context);
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                             {pointer, llvm::Type::getInt64Ty(context), pointer}, false);
  auto* const main = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  llvm::IRBuilder<>(llvm::BasicBlock::Create(context, "", main)).CreateRetVoid();
}

// Returns the set of Entry.
Result<uint8_t> rename_entries(llvm::Module& module, const ImportOptions& options) {
  const auto& name = options.name;
  auto* const main = find_function(module, name + abi_names::main_suffix);
  if (!main)
    return fail(TC_ERR_NOT_FOUND,
                "{}: defines no {}_main; the file of ifunc '{}' defines void {}_main(void *payload, "
                "size_t payload_size, void *target_args); {} (--name gives the ifunc another name)",
                options.label, name, name, name, near_names(module, name + abi_names::main_suffix));
  if (!has_type(*main, true, "pip"))
    return fail(TC_ERR_INVALID,
                "{}: {}_main has another type than void {}_main(void *payload, size_t payload_size, "
                "void *target_args)",
                options.label, name, name);
  uint8_t entries = entry_main;
  std::vector<std::pair<llvm::Function*, const char*>> found{{main, abi_names::main}};
  for (const auto& form : forms) {
    auto* const function = find_function(module, name + form.suffix);
    if (!function) continue;
    if (has_type(*function, form.returns_void, form.parameters)) {
      entries |= form.entry;
      found.emplace_back(function, form.symbol);
    } else if (form.entry != entry_payload_init && !(entries & entry_payload_init)) {
      return fail(TC_ERR_INVALID, "{}: {}{} has another type than {}", options.label, name, form.suffix,
                  fmt::format(fmt::runtime(form.declaration), name));
    }
  }
  TC_CHECK(check_pairs(entries, options));
  for (const auto& [function, symbol] : found) rename(module, *function, symbol);
  follow_aliases(module, options);
  return entries;
}

// What the module defines for others, sorted, once its entries are settled.
Result<std::vector<std::string>> take_exports(llvm::Module& module, const ImportOptions& options) {
  std::vector<std::string> exports;
  if (!options.library) return exports;
  for (auto& value : module.global_values()) {
    if (!is_for_others(value)) continue;
    const auto name = value.getName().str();
    if (is_ifunc_abi(name) || is_compiler_runtime(name))
      return fail(TC_ERR_INVALID,
                  "{}: a library cannot export '{}', which every ifunc has already; give it another name",
                  options.label, name);
    value.setLinkage(llvm::GlobalValue::ExternalLinkage);
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    if (auto* const object = llvm::dyn_cast<llvm::GlobalObject>(&value)) {
      object->setComdat(nullptr);
      object->setSection("");
    }
    exports.push_back(name);
  }
  if (exports.empty())
    return fail(TC_ERR_INVALID, "{}: a library that defines nothing for others: every function and variable is static",
                options.label);
  std::sort(exports.begin(), exports.end());
  return exports;
}

// The number in a constant of 32 bits that a macro of <threechains/ifunc.h> defines. Nothing: the module has no such
// constant. 0: it is there, and is no number. No entry uses it, so it does not travel.
std::optional<uint64_t> find_constant(const llvm::Module& module, llvm::StringRef name) {
  // In C++ a const at file scope has internal linkage, and so a mangled name.
  const auto mangled = fmt::format("_ZL{}{}", name.size(), name.str());
  const llvm::GlobalVariable* found = nullptr;
  for (const auto& global : module.globals())
    if (global.getName() == name || global.getName() == mangled) found = &global;
  if (!found) return std::nullopt;
  if (!found->hasInitializer()) return 0;
  // Rust writes numbers as arrays of bytes, so it is read as the code would load it.
  const auto* const value = llvm::dyn_cast_or_null<llvm::ConstantInt>(
      llvm::ConstantFoldLoadFromConst(const_cast<llvm::Constant*>(found->getInitializer()),
                                      llvm::Type::getInt32Ty(module.getContext()), module.getDataLayout()));
  return value ? value->getZExtValue() : 0;
}

// TC_PAYLOAD_ALIGN's value, as its logarithm; 4 when there is none.
Result<uint8_t> take_alignment(const llvm::Module& module, const ImportOptions& options) {
  const auto bytes = find_constant(module, abi_names::payload_alignment);
  if (!bytes) return uint8_t{4};
  if (!std::has_single_bit(*bytes) || *bytes < 16 || *bytes > 4096)
    return fail(TC_ERR_INVALID, "{}: TC_PAYLOAD_ALIGN({}) is no power of two from 16 to 4096", options.label, *bytes);
  return static_cast<uint8_t>(std::countr_zero(*bytes));
}

// The names of #pragma comment(lib, ...).
std::vector<std::string> take_libraries(llvm::Module& module) {
  std::vector<std::string> libraries;
  auto* const node = module.getNamedMetadata("llvm.dependent-libraries");
  if (!node) return libraries;
  for (const auto* const entry : node->operands())
    for (const auto& operand : entry->operands())
      if (const auto* const name = llvm::dyn_cast<llvm::MDString>(operand))
        libraries.push_back(name->getString().str());
  module.eraseNamedMetadata(node);
  return libraries;
}

// By priority, and in order of appearance where that is equal.
using Constructors = std::multimap<uint64_t, llvm::Function*>;

Constructors constructors_of(const llvm::GlobalVariable& list) {
  Constructors found;
  const auto* const array = llvm::dyn_cast<llvm::ConstantArray>(list.getInitializer());
  if (!array) return found;
  for (const auto& operand : array->operands()) {
    const auto* const entry = llvm::dyn_cast<llvm::ConstantStruct>(operand.get());
    if (!entry) continue;
    const auto* const priority = llvm::dyn_cast<llvm::ConstantInt>(entry->getOperand(0));
    auto* const function = llvm::dyn_cast<llvm::Function>(entry->getOperand(1)->stripPointerCasts());
    if (priority && function) found.emplace(priority->getZExtValue(), function);
  }
  return found;
}

// void construct_once() { if (!done) { done = true; first(); second(); ... } }
llvm::Function* construct_once(llvm::Module& module, const Constructors& constructors) {
  auto& context = module.getContext();
  auto* const byte = llvm::Type::getInt8Ty(context);
  auto* const done = new llvm::GlobalVariable(module, byte, false, llvm::GlobalValue::InternalLinkage,
                                              llvm::ConstantInt::get(byte, 0), "tc.constructed");
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto* const once = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "tc.construct_once", module);
  auto* const look = llvm::BasicBlock::Create(context, "", once);
  auto* const construct = llvm::BasicBlock::Create(context, "", once);
  auto* const leave = llvm::BasicBlock::Create(context, "", once);
  llvm::IRBuilder<> builder(look);
  builder.CreateCondBr(builder.CreateIsNull(builder.CreateLoad(byte, done)), construct, leave);
  builder.SetInsertPoint(construct);
  builder.CreateStore(llvm::ConstantInt::get(byte, 1), done);
  for (const auto& [priority, function] : constructors) builder.CreateCall(function);
  builder.CreateBr(leave);
  builder.SetInsertPoint(leave);
  builder.CreateRetVoid();
  return once;
}

// What the front end found out about a function that did not construct yet.
void forget_effects(llvm::Function& function) {
  for (const auto kind : {llvm::Attribute::Memory, llvm::Attribute::NoFree, llvm::Attribute::NoRecurse,
                          llvm::Attribute::NoSync, llvm::Attribute::WillReturn, llvm::Attribute::NoCallback})
    function.removeFnAttr(kind);
}

// Does the author say TC_CONCURRENT? Refuses it for code that the toolchain itself makes write without synchronisation.
Result<bool> take_concurrent(const llvm::Module& module, const ImportOptions& options) {
  const auto said = find_constant(module, abi_names::concurrent);
  if (!said) return false;
  if (*said != 1)
    return fail(TC_ERR_INVALID, "{}: defines '{}' as {} when TC_CONCURRENT defines it as 1; give it another name",
                options.label, abi_names::concurrent, *said == 0 ? "0, or no number," : std::to_string(*said));
  if (options.library)
    return fail(TC_ERR_INVALID,
                "{}: a library cannot be TC_CONCURRENT, because its functions run in calls of the ifuncs that use it; "
                "leave it out here, and write it in those ifuncs",
                options.label);
  const auto* const list = module.getNamedGlobal("llvm.global_ctors");
  if (options.allow_ctors && list && list->hasInitializer() && !constructors_of(*list).empty())
    return fail(TC_ERR_INVALID,
                "{}: TC_CONCURRENT code cannot have static constructors, because its first call would run them while "
                "other calls use what they construct; initialise in {}_main, or make it constexpr",
                options.label, options.name);
  return true;
}

void forget_destructors(llvm::Module& module) {
  if (auto* const list = module.getNamedGlobal("llvm.global_dtors")) list->eraseFromParent();
  auto* const at_exit = module.getFunction("__cxa_atexit");
  if (!at_exit || !at_exit->isDeclaration()) return;
  for (auto* const user : llvm::make_early_inc_range(at_exit->users()))
    if (auto* const call = llvm::dyn_cast<llvm::CallInst>(user); call && call->getCalledOperand() == at_exit) {
      call->replaceAllUsesWith(llvm::Constant::getNullValue(call->getType()));
      call->eraseFromParent();
    }
}

}  // namespace

Result<Imported> settle_entries(llvm::Module& module, const ImportOptions& options) {
  Imported imported;
  ensure_main(module, options);
  TC_ASSIGN(imported.entries, rename_entries(module, options));
  TC_ASSIGN(const bool is_concurrent, take_concurrent(module, options));
  if (is_concurrent) imported.entries |= entry_concurrent;
  TC_ASSIGN(imported.exports, take_exports(module, options));
  if (options.library) imported.entries |= entry_library;
  TC_ASSIGN(imported.alignment_log2, take_alignment(module, options));
  imported.libraries = take_libraries(module);
  return imported;
}

void construct_on_first_call(llvm::Module& module, const std::vector<std::string>& entries) {
  forget_destructors(module);
  auto* const list = module.getNamedGlobal("llvm.global_ctors");
  if (!list || !list->hasInitializer()) return;
  const auto constructors = constructors_of(*list);
  list->eraseFromParent();
  if (constructors.empty()) return;
  auto* const once = construct_once(module, constructors);
  for (const auto& name : entries) {
    auto* const entry = module.getFunction(name);
    if (!entry || entry->isDeclaration()) continue;
    forget_effects(*entry);
    llvm::IRBuilder<>(&*entry->getEntryBlock().getFirstInsertionPt()).CreateCall(once);
  }
}

}  // namespace tc::toolchain
