// SPDX-License-Identifier: Apache-2.0
//
// Which slice runs, and linking it. Loading objects is loader.cc, bitcode bitcode_builder.cc.
#include "target/object_slice.h"
#include "target/store.h"
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

// What a library calls is of the node's own: libraries do not build upon each other. And an ifunc is bound to libraries
// by what its manifest lists alone, for that is how it is found when one of them is replaced.
SymbolResolver Store::resolver_for(const StoredCode& code) const {
  return [this, &code](const std::string& symbol) {
    const bool injected = policy_.has_injected() && !code.is_library() && code.imports(symbol);
    return policy_.resolve(symbol, code.libraries, injected ? Policy::Injected::with : Policy::Injected::without);
  };
}

Result<Store::Linked> Store::link(const StoredCode& code) {
  auto linked = link_slice(code);
  if (!linked && linked.error().code == TC_ERR_UNRESOLVED) linked.error().message += about_libraries(code);
  if (!linked) return linked;
  const auto is_injected = [this](const auto& symbol) { return policy_.is_injected(symbol); };
  linked->counted = options_.executions != nullptr &&
                    (code.is_library() || std::ranges::any_of(code.bundle->manifest().imports, is_injected));
  return linked;
}

// What an unresolved symbol may come from.
std::string Store::about_libraries(const StoredCode& code) {
  if (code.is_library()) return "; libraries that are sent do not link to each other";
  std::string text;
  for (const auto& name : code.bundle->manifest().against) {
    const auto* const held = exporting(name);
    text += held == nullptr
                ? fmt::format("; it was built against library '{}', which is not on this node", name)
                : fmt::format("; it was built against library '{}', of which this node holds version {}, exporting {}",
                              name, held->id().short_hex(), fmt::join(held->bundle->manifest().exports, ", "));
  }
  return text;
}

Result<Store::Linked> Store::link_slice(const StoredCode& code) {
  const auto& bundle = *code.bundle;
  if (options_.use_objects)
    if (const auto slice = bundle.find(SliceRole::target, SliceForm::object, host_)) return link_object(code, *slice);
  if (!code.compiled.empty()) return link_compiled(code);
  if (!options_.use_bitcode) return fail(no_slice(bundle).error());
  const auto slice = bundle.find(SliceRole::target, SliceForm::bitcode, host_);
  if (!slice) return fail(no_slice(bundle).error());
  return code.is_library() ? link_library_bitcode(code, *slice) : link_bitcode(code, *slice);
}

Result<Store::Linked> Store::link_object(const StoredCode& code, size_t slice) {
  Linked linked;
  TC_CHECK(with_object(*code.bundle, slice, host_.arch,
                       [&](const ElfImage& image) { return link_image(code, image, linked); }));
  return linked;
}

Result<Store::Linked> Store::link_compiled(const StoredCode& code) {
  Linked linked;
  TC_ASSIGN(const auto image, ElfImage::read(code.compiled, host_.arch));
  TC_CHECK(link_image(code, image, linked));
  return linked;
}

Status Store::link_image(const StoredCode& code, const ElfImage& image, Linked& linked) {
  const auto entry = image.find_code(abi_names::main);
  if (!entry) return fail(TC_ERR_MALFORMED, "its object defines no function '{}'", abi_names::main);
  TC_ASSIGN(linked.memory.image, load_image(image, *arena_, resolver_for(code)));
  linked.entry = reinterpret_cast<EntryPoint>(linked.memory.image.at(*entry));
  for (const auto& name : code.bundle->manifest().exports) {
    const auto address = image.find(name);
    if (!address) return fail(TC_ERR_MALFORMED, "its object does not define '{}', which it exports", name);
    linked.exports.emplace(name, linked.memory.image.at(*address));
  }
  TC_ASSIGN(linked.variables, variables_of(image, linked.memory.image));
  linked.tier = Tier::object;
  ++stats_.object_loads;
  return {};
}

Result<Store::Linked> Store::link_bitcode(const StoredCode& code, size_t which) {
  const auto resolve = resolver_for(code);
  const BitcodeSlice slice(*code.bundle, which);
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
    ++stats_.baseline_compiles;
  }
  void* const entry = linked.memory.jitted.symbol(abi_names::main);
  if (entry == nullptr) return fail(TC_ERR_MALFORMED, "its bitcode defines no function '{}'", abi_names::main);
  linked.entry = reinterpret_cast<EntryPoint>(entry);
  linked.variables = variables_of(linked.memory.jitted);
  return linked;
}

// Tuned at once, as it will not be exchanged later.
Result<Store::Linked> Store::link_library_bitcode(const StoredCode& code, size_t which) {
  const BitcodeSlice slice(*code.bundle, which);
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

Status Store::no_slice(const Bundle& bundle) const {
  std::string there;
  for (size_t i = 0; i < bundle.manifest().slices.size(); ++i) {
    const auto& slice = bundle.manifest().slices[i];
    if (slice.role != SliceRole::target) continue;
    there += fmt::format("{}{} ({}{})", there.empty() ? "" : ", ", slice.triple.text,
                         slice.form == SliceForm::object ? "object" : "bitcode", bundle.holds(i) ? "" : ", not sent");
  }
  const char* const wants = options_.use_objects ? (options_.use_bitcode ? "code" : "an object")
                                                 : (options_.use_bitcode ? "bitcode" : "nothing: both kinds are off");
  const bool has_bitcode = bundle.find(SliceRole::target, SliceForm::bitcode, host_).has_value();
  const auto* const or_else =
      lacks_object(bundle) ? ", or start this node with --compile-at and the address of one that compiles for it" : "";
  return fail(TC_ERR_NO_SLICE, "this node is {} and runs {}{}, when the bundle holds {}; build it {} --target {}{}",
              host_.text, wants, options_.use_bitcode ? "" : " (no LLVM to compile bitcode)",
              there.empty() ? "no target code" : there, has_bitcode ? "without --no-object, with" : "with", host_.text,
              or_else);
}

bool Store::lacks_object(const Bundle& bundle) const noexcept {
  if (options_.use_bitcode || !options_.use_objects) return false;
  if (bundle.find(SliceRole::target, SliceForm::object, host_)) return false;
  return bundle.find(SliceRole::target, SliceForm::bitcode, host_).has_value();
}

}  // namespace tc::target
