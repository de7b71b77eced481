// SPDX-License-Identifier: Apache-2.0
#include "target/code_linker.h"

#include <algorithm>

#include "target/code_store.h"
#include "target/elf_image.h"
#include "wire/abi_names.h"

namespace tc::target {

namespace {

Result<Variables> variables_of(const ElfImage& image, const LoadedImage& loaded) {
  Variables variables;
  for (size_t i = 0; i < image.symbol_count(); ++i) {
    TC_ASSIGN(const auto symbol, image.symbol(i));
    if (symbol.defined && symbol.name.starts_with(abi_names::variable_prefix))
      variables.emplace(symbol.name, loaded.at(symbol.address));
  }
  return variables;
}

Variables variables_of(const JitCode& code) {
  Variables variables;
  for (size_t i = 0;; ++i) {
    auto name = fmt::format("{}{}", abi_names::variable_prefix, i);
    void* const at = code.symbol(name);
    if (at == nullptr) return variables;
    variables.emplace(std::move(name), at);
  }
}

}  // namespace

CodeLinker::CodeLinker(const CodeStoreOptions& options, const Policy& policy, std::unique_ptr<memory::Arena> arena,
                       std::unique_ptr<DiskCache> cache)
    : options_(options),
      policy_(policy),
      arena_(std::move(arena)),
      jit_(options.jit_plugin, arena_->kind() == memory::Arena::Kind::exported ? arena_.get() : nullptr),
      builder_(jit_, std::move(cache), options.warn, options.node, options.fatal_bitcode) {}

Status CodeLinker::warm_up() {
  if (!options_.use_bitcode) return {};
  TC_ASSIGN(Jit* const jit, jit_.jit());
  return jit->warm_up();
}

// What a library calls is of the node's own: libraries do not build upon each other. And an ifunc is bound to libraries
// by what its manifest lists alone, for that is how it is found when one of them is replaced.
SymbolResolver CodeLinker::resolver_for(const Code& code) const {
  return [this, &code](const std::string& symbol) {
    const bool may_use_them = policy_.has_library_exports() && !code.is_library() && code.imports(symbol);
    return policy_.resolve(symbol, code.libraries,
                           may_use_them ? Policy::LibraryExports::with : Policy::LibraryExports::without);
  };
}

Result<CodeLinker::Linked> CodeLinker::link(const Code& code) {
  auto linked = link_slice(code);
  if (!linked) return linked;
  const auto is_of_library = [this](const auto& symbol) { return policy_.is_library_export(symbol); };
  const auto& imports = code.bundle->manifest().imports;
  linked->replaceable =
      code.is_library() || (policy_.has_library_exports() && std::ranges::any_of(imports, is_of_library));
  return linked;
}

Result<CodeLinker::Choice> CodeLinker::choose(const Code& code) const {
  const auto& bundle = *code.bundle;
  if (options_.use_objects)
    if (const auto slice = bundle.find(SliceRole::target, SliceForm::object, options_.triple))
      return Choice{Choice::What::object, *slice};
  if (!code.compiled.empty()) return Choice{Choice::What::compiled};
  if (options_.use_bitcode)
    if (const auto slice = bundle.find(SliceRole::target, SliceForm::bitcode, options_.triple))
      return Choice{Choice::What::bitcode, *slice};
  return fail(no_slice(bundle).error());
}

Status CodeLinker::check_has_slice(const Code& code) const {
  TC_CHECK(choose(code));
  return {};
}

Result<CodeLinker::Linked> CodeLinker::link_slice(const Code& code) {
  TC_ASSIGN(const auto choice, choose(code));
  switch (choice.what) {
    case Choice::What::object: return link_object(code, choice.slice);
    case Choice::What::compiled: return link_compiled(code);
    case Choice::What::bitcode: break;
  }
  return code.is_library() ? link_library_bitcode(code, choice.slice) : link_bitcode(code, choice.slice);
}

Result<CodeLinker::Linked> CodeLinker::link_object(const Code& code, size_t slice) {
  Linked linked;
  TC_CHECK(with_object(*code.bundle, slice, options_.triple.arch,
                       [&](const ElfImage& image) { return link_image(code, image, linked); }));
  return linked;
}

Result<CodeLinker::Linked> CodeLinker::link_compiled(const Code& code) {
  Linked linked;
  TC_ASSIGN(const auto image, ElfImage::read(code.compiled, options_.triple.arch));
  TC_CHECK(link_image(code, image, linked));
  return linked;
}

Status CodeLinker::link_image(const Code& code, const ElfImage& image, Linked& linked) {
  const auto entry = image.find_code(abi_names::main);
  if (!entry) return fail(TC_ERR_MALFORMED, "its object defines no function '{}'", abi_names::main);
  TC_ASSIGN(linked.memory.image, load_image(image, *arena_, resolver_for(code)));
  linked.entry = reinterpret_cast<EntryPoint>(linked.memory.image.at(*entry));
  linked.memory.image_entry = reinterpret_cast<uintptr_t>(linked.entry);
  for (const auto& name : code.bundle->manifest().exports) {
    const auto address = image.find(name);
    if (!address) return fail(TC_ERR_MALFORMED, "its object does not define '{}', which it exports", name);
    linked.exports.emplace(name, linked.memory.image.at(*address));
  }
  TC_ASSIGN(linked.variables, variables_of(image, linked.memory.image));
  linked.tier = Tier::object;
  ++object_loads_;
  return {};
}

Result<CodeLinker::Linked> CodeLinker::link_bitcode(const Code& code, size_t which) {
  const auto resolve = resolver_for(code);
  const BitcodeSlice slice(*code.bundle, which, code.assembly, code.sender);
  Linked linked;
  linked.tier = Tier::baseline;
  if (options_.tune && builder_.has_cache()) {
    if (auto cached = builder_.from_cache(slice, Effort::tuned, resolve)) {
      linked.memory.jitted = std::move(*cached);
      linked.tier = Tier::tuned;
    }
  }
  if (!linked.memory.jitted) {
    // Where tuned code will follow, that is what deserves the disk.
    TC_ASSIGN(linked.memory.jitted, builder_.build(slice, Effort::baseline, !options_.tune, resolve));
    ++baseline_compiles_;
  }
  void* const entry = linked.memory.jitted.symbol(abi_names::main);
  if (entry == nullptr) return fail(TC_ERR_MALFORMED, "its bitcode defines no function '{}'", abi_names::main);
  linked.entry = reinterpret_cast<EntryPoint>(entry);
  linked.variables = variables_of(linked.memory.jitted);
  return linked;
}

// Tuned at once, as it will not be exchanged later.
Result<CodeLinker::Linked> CodeLinker::link_library_bitcode(const Code& code, size_t which) {
  const BitcodeSlice slice(*code.bundle, which, code.assembly, code.sender);
  Linked linked;
  linked.tier = Tier::tuned;
  TC_ASSIGN(linked.memory.jitted, builder_.build(slice, Effort::tuned, true, resolver_for(code)));
  linked.entry = reinterpret_cast<EntryPoint>(linked.memory.jitted.symbol(abi_names::main));
  if (linked.entry == nullptr) return fail(TC_ERR_MALFORMED, "its bitcode defines no function '{}'", abi_names::main);
  for (const auto& name : code.bundle->manifest().exports) {
    void* const address = linked.memory.jitted.symbol(name);
    if (address == nullptr) return fail(TC_ERR_MALFORMED, "its bitcode does not define '{}', which it exports", name);
    linked.exports.emplace(name, address);
  }
  return linked;
}

Status CodeLinker::no_slice(const Bundle& bundle) const {
  std::string there;
  for (size_t i = 0; i < bundle.manifest().slices.size(); ++i) {
    const auto& slice = bundle.manifest().slices[i];
    if (slice.role != SliceRole::target) continue;
    there += fmt::format("{}{} ({}{})", there.empty() ? "" : ", ", slice.triple.text,
                         slice.form == SliceForm::object ? "object" : "bitcode", bundle.holds(i) ? "" : ", not sent");
  }
  const char* const wants = options_.use_objects ? (options_.use_bitcode ? "code" : "an object")
                                                 : (options_.use_bitcode ? "bitcode" : "nothing: both kinds are off");
  const bool has_bitcode = bundle.find(SliceRole::target, SliceForm::bitcode, options_.triple).has_value();
  const auto* const or_else =
      lacks_object(bundle) ? ", or start this node with --compile-at and the address of one that compiles for it" : "";
  return fail(TC_ERR_NO_SLICE, "this node is {} and runs {}{}, when the bundle holds {}; build it {} --target {}{}",
              options_.triple.text, wants, options_.use_bitcode ? "" : " (no LLVM to compile bitcode)",
              there.empty() ? "no target code" : there, has_bitcode ? "without --no-object, with" : "with",
              options_.triple.text, or_else);
}

bool CodeLinker::lacks_object(const Bundle& bundle) const noexcept {
  if (options_.use_bitcode || !options_.use_objects) return false;
  if (bundle.find(SliceRole::target, SliceForm::object, options_.triple)) return false;
  return bundle.find(SliceRole::target, SliceForm::bitcode, options_.triple).has_value();
}

}  // namespace tc::target
