// SPDX-License-Identifier: Apache-2.0
#include "target/payload_code.h"

#include <dlfcn.h>

#include <array>

#include "target/bitcode_builder.h"
#include "target/elf_image.h"
#include "target/executor.h"
#include "wire/abi_names.h"

namespace tc::target {

namespace {

constexpr std::array source_symbols = {abi_names::payload_get_max_size, abi_names::payload_init,
                                       abi_names::payload_bound};

}  // namespace

PayloadCode::Libraries::~Libraries() {
  for (void* handle : handles_) dlclose(handle);
}

Status PayloadCode::Libraries::open(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const words = dlerror();
      return fail(TC_ERR_UNRESOLVED, "library '{}' cannot be opened: {}", name, words != nullptr ? words : "");
    }
    handles_.push_back(handle);
  }
  return {};
}

Result<void*> PayloadCode::Libraries::resolve(const std::string& symbol) const {
  for (void* handle : handles_)
    if (void* const address = dlsym(handle, symbol.c_str())) return address;
  if (void* const address = compiler_runtime_symbol(symbol)) return address;
  if (void* const address = dlsym(RTLD_DEFAULT, symbol.c_str())) return address;
  return fail(TC_ERR_UNRESOLVED,
              "symbol '{}', which its payload functions use, is in none of its libraries ({}) and "
              "not in this process: declare its library",
              symbol, handles_.size());
}

Status PayloadCode::load_for_host(const Bundle& bundle) {
  const auto host = TargetTriple::host();
  const auto object = bundle.find(SliceRole::source, SliceForm::object, host);
  const auto bitcode = bundle.find(SliceRole::source, SliceForm::bitcode, host);
  if (!object && !bitcode)
    return fail(TC_ERR_NO_SLICE, "it has no payload functions for {}: build it with --target {}", host.text, host.text);
  if (auto opened = libraries_.open(bundle.manifest().dependencies); !opened) {
    // The libraries belong to the target's side first; the source may well do without them.
    missing_ = std::move(opened).error().message;
  }
  auto loaded = object ? load_object(bundle, *object, host.arch) : load_bitcode(bundle, *bitcode);
  if (!loaded && loaded.error().code == TC_ERR_UNRESOLVED && !missing_.empty())
    loaded.error().message += "; " + missing_;
  return loaded;
}

Status PayloadCode::load_object(const Bundle& bundle, size_t slice, Arch arch) {
  return with_object(bundle, slice, arch, [this](const ElfImage& image) -> Status {
    TC_ASSIGN(image_, load_image(image, *arena_, resolver()));
    for (const char* name : source_symbols)
      if (const auto address = image.find_code(name)) symbols_[name] = image_.at(*address);
    return {};
  });
}

Status PayloadCode::load_bitcode(const Bundle& bundle, size_t slice) {
  BitcodeBuilder builder(jit_, nullptr);
  TC_ASSIGN(jitted_,
            builder.build(BitcodeSlice(bundle, slice, Assembly::allowed), Effort::baseline, false, resolver()));
  for (const char* name : source_symbols)
    if (void* const address = jitted_.symbol(name)) symbols_[name] = address;
  return {};
}

void* PayloadCode::symbol(std::string_view name) const noexcept {
  const auto found = symbols_.find(name);
  return found != symbols_.end() ? found->second : nullptr;
}

Result<std::unique_ptr<PayloadCode>> PayloadCode::load(const Bundle& bundle) {
  TC_ASSIGN(auto arena, memory::Arena::create(memory::Arena::Kind::separate));
  std::unique_ptr<PayloadCode> source(new PayloadCode(std::move(arena)));
  if (auto loaded = source->load_for_host(bundle); !loaded)
    return context(fmt::format("ifunc '{}'", bundle.manifest().name), std::move(loaded).error());
  return source;
}

}  // namespace tc::target
