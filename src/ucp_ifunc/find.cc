// SPDX-License-Identifier: Apache-2.0
//
// From a name to an ifunc: the directory of ifuncs, and what a frame will hold of it.
#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "target/payload_code.h"
#include "ucp_ifunc/ifunc.h"
#include "ucp_ifunc/pack.h"
#include "wire/frame.h"

namespace tc::ucp {

namespace fs = std::filesystem;

namespace {

fs::path directory_of_ifuncs() {
  const char* const chosen = std::getenv("UCX_IFUNC_LIB_DIR");
  return chosen != nullptr && *chosen != 0 ? chosen : "/usr/lib";
}

// NAME.TRIPLE.bc, in the order of their names.
std::vector<fs::path> loose_files(const fs::path& directory, const std::string& name) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const auto file = entry.path().filename().string();
    if (!file.starts_with(name + ".") || !file.ends_with(".bc") || file.size() <= name.size() + 4) continue;
    if (TargetTriple::parse(file.substr(name.size() + 1, file.size() - name.size() - 4))) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Result<Bundle> pack_loose_files(const fs::path& directory, const std::string& name) {
  const auto files = loose_files(directory, name);
  if (files.empty())
    return fail(TC_ERR_NOT_FOUND,
                "no ifunc '{}': there is neither {}.ifunc nor {}.TRIPLE.bc in {}, which UCX_IFUNC_LIB_DIR names", name,
                name, name, directory.string());
  LooseBitcode loose;
  for (const auto& file : files) {
    TC_ASSIGN(auto module, read_file(file, BundleLimits::slice_bytes));
    loose.modules.push_back(std::move(module));
  }
  const auto dependencies = directory / (name + ".deps");
  std::error_code ignored;
  if (fs::exists(dependencies, ignored)) {
    TC_ASSIGN(const auto text, read_file(dependencies, 64 * 1024));
    loose.dependencies = as_text(text);
  }
  return pack(name, loose);
}

uint64_t slices_for_frames(const Bundle& bundle, bool bitcode) {
  uint64_t all = 0, objects = 0;
  const auto& slices = bundle.manifest().slices;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].role != SliceRole::target || !bundle.holds(i)) continue;
    all |= uint64_t{1} << i;
    if (slices[i].form == SliceForm::object) objects |= uint64_t{1} << i;
  }
  return bitcode || objects == 0 ? all : objects;
}

bool has_source_slices(const Bundle& bundle) {
  const auto& slices = bundle.manifest().slices;
  for (size_t i = 0; i < slices.size(); ++i)
    if (slices[i].role == SliceRole::source && bundle.holds(i)) return true;
  return false;
}

Status load_payload_functions(Ifunc& ifunc, const Bundle& bundle) {
  // Source slices of other ifuncs hold no code. Those of an ifunc that was received stayed with its first sender.
  if (!source::has_payload_functions(bundle.manifest()) || !has_source_slices(bundle)) return {};
  TC_ASSIGN(const std::shared_ptr<target::PayloadCode> code, target::PayloadCode::load(bundle));
  const auto address_of = [&](const char* name) { return code->symbol(name); };
  ifunc.functions = source::bind_payload_functions(bundle.manifest(), code, address_of);
  return {};
}

}  // namespace

Result<Bundle> find_bundle(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.size() > BundleLimits::name_bytes)
    return fail(TC_ERR_INVALID, "'{}' is no name of an ifunc: it is looked up in the directory of ifuncs", name);
  const auto directory = directory_of_ifuncs();
  const auto file = directory / (name + ".ifunc");
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return pack_loose_files(directory, name);
  TC_ASSIGN(const auto bytes, read_file(file, BundleLimits::bundle_bytes));
  auto bundle = Bundle::read(bytes);
  if (!bundle) return context(file.string(), std::move(bundle).error());
  return bundle;
}

Result<std::shared_ptr<Ifunc>> make_ifunc(const std::string& name, const Bundle& bundle, bool bitcode) {
  auto ifunc = std::make_shared<Ifunc>();
  ifunc->name = name;
  ifunc->id = bundle.id();
  ifunc->library = bundle.manifest().has(entry_library);
  TC_CHECK(load_payload_functions(*ifunc, bundle));
  const auto carried = slices_for_frames(bundle, bitcode);
  const auto bytes = bundle.bytes_for(carried);
  wire::append_code(ifunc->code, {bundle.id(), carried, static_cast<uint32_t>(bytes.size())}, bytes);
  return ifunc;
}

}  // namespace tc::ucp
