// SPDX-License-Identifier: Apache-2.0
#include "source/registry.h"

#include <utility>

#include "wire/abi_names.h"

namespace tc::source {

namespace {

bool is_file_name(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".ifunc"); }

}  // namespace

Result<std::filesystem::path> Registry::find_file(const std::string& name) const {
  std::error_code ignored;
  if (is_file_name(name)) {
    if (std::filesystem::exists(name, ignored)) return std::filesystem::path(name);
    return fail(TC_ERR_NOT_FOUND, "there is no file {}", name);
  }
  std::string tried;
  for (const auto& directory : path_) {
    auto file = directory / (name + ".ifunc");
    if (std::filesystem::exists(file, ignored)) return file;
    tried += (tried.empty() ? "" : ", ") + file.string();
  }
  return fail(TC_ERR_NOT_FOUND, "no ifunc '{}': looked for {}", name,
              tried.empty() ? "nothing, as the path is empty" : tried);
}

std::shared_ptr<Ifunc> Registry::add(Bundle bundle) {
  auto& entry = by_content_[bundle.id()];
  if (entry.ifunc == nullptr) {
    entry.ifunc = std::make_shared<Ifunc>();
    entry.ifunc->index = next_index_++;
    entry.ifunc->bundle = std::move(bundle);
  } else {
    entry.ifunc->bundle.merge(bundle);
  }
  ++entry.registrations;
  by_name_[entry.ifunc->name()] = entry.ifunc;
  return entry.ifunc;
}

void Registry::remove(const std::shared_ptr<Ifunc>& ifunc) {
  const auto found = by_content_.find(ifunc->bundle.id());
  if (found == by_content_.end() || --found->second.registrations != 0) return;
  if (const auto named = by_name_.find(ifunc->name()); named != by_name_.end() && named->second == ifunc)
    by_name_.erase(named);
  by_content_.erase(found);
}

std::shared_ptr<Ifunc> Registry::find(const ContentId& id) const {
  const auto found = by_content_.find(id);
  return found != by_content_.end() ? found->second.ifunc : nullptr;
}

std::shared_ptr<Ifunc> Registry::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? found->second : nullptr;
}

bool has_payload_functions(const Manifest& manifest) noexcept {
  return manifest.has(entry_payload_get_max_size) || manifest.has(entry_payload_init) ||
         manifest.has(entry_payload_bound) || manifest.has(entry_payload_init_2022);
}

PayloadFunctions bind_payload_functions(const Manifest& manifest, std::shared_ptr<void> code,
                                        const std::function<void*(const char* name)>& address_of) {
  PayloadFunctions functions;
  const bool has_bound = manifest.has(entry_payload_bound);
  functions.max_size = reinterpret_cast<PayloadFunctions::GetMaxSize>(
      address_of(has_bound ? abi_names::payload_bound : abi_names::payload_get_max_size));
  void* const init = address_of(abi_names::payload_init);
  if (manifest.has(entry_payload_init_2022))
    functions.init_2022 = reinterpret_cast<PayloadFunctions::Init2022>(init);
  else
    functions.init_2021 = reinterpret_cast<PayloadFunctions::Init2021>(init);
  functions.keep_alive = std::move(code);
  return functions;
}

}  // namespace tc::source
