// SPDX-License-Identifier: Apache-2.0
#include "toolchain/inspect.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

#include "trust/code_signature.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

struct EntryName {
  Entry entry;
  const char* suffix;
  const char* note;
};

constexpr EntryName entry_names[] = {
    {entry_main, "main", "at the target"},
    {entry_payload_get_max_size, abi_names::payload_get_max_size, "at the source"},
    {entry_payload_init, abi_names::payload_init, "at the source"},
    {entry_payload_bound, abi_names::payload_bound, "at the source, 2022 form"},
    {entry_payload_init_2022, abi_names::payload_init, "at the source, 2022 form"},
};

const char* role_name(SliceRole role) {
  if (role == SliceRole::bundled) return "bundled";
  return role == SliceRole::target ? "target" : "source";
}

const char* form_name(SliceForm form) {
  if (form == SliceForm::bundle) return "bundle";
  return form == SliceForm::bitcode ? "bitcode" : "object";
}

std::string list(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

void describe_slice(std::string& out, size_t number, const Bundle& bundle) {
  const auto& slice = bundle.manifest().slices[number];
  const auto size = slice.compressed ? fmt::format("{} of {}", slice.stored_size, slice.unpacked_size)
                                     : fmt::format("{}", slice.stored_size);
  fmt::format_to(std::back_inserter(out), "  {:<3} {:<26} {:<9} {:<8} {:<14} {:>16}  {}{}\n", number, slice.triple.text,
                 role_name(slice.role), form_name(slice.form), slice.cpu.empty() ? "-" : slice.cpu, size,
                 slice.hash.short_hex(), bundle.holds(number) ? "" : "  (not here)");
}

// What a signature is of: the bundle, or an ifunc in it by its name.
std::string covered_name(const Bundle& bundle, const CodeSignature& signature) {
  if (signature.covers == CodeSignature::whole_bundle) return bundle.manifest().name;
  return bundle.manifest().slices[signature.covers].cpu;
}

bool holds(const Bundle& bundle, CodeSignature signature) {
  if (signature.covers == CodeSignature::whole_bundle) return trust::is_valid(signature, bundle);
  const auto inner = bundle.bundled(covered_name(bundle, signature));
  signature.covers = CodeSignature::whole_bundle;
  return inner && trust::is_valid(signature, *inner);
}

std::string key_text(const CodeSignature& signature) { return trust::PublicKey{signature.key}.text(); }

}  // namespace

std::string describe(const Bundle& bundle) {
  const auto& manifest = bundle.manifest();
  std::string out;
  const auto line = [&](const char* what, const std::string& value) {
    fmt::format_to(std::back_inserter(out), "{:<13} {}\n", what, value);
  };
  line("ifunc", manifest.name);
  line("content id", bundle.id().hex());
  line("size", fmt::format("{} bytes", bundle.bytes().size()));
  line("made by", fmt::format("{}, ifunc ABI {}", manifest.tool, manifest.abi_version));
  const char* what = "entries";
  for (const auto& name : entry_names)
    if (manifest.has(name.entry))
      line(std::exchange(what, ""), fmt::format("{}_{}  ({})", manifest.name, name.suffix, name.note));
  line("alignment", fmt::format("{} bytes", 1u << manifest.payload_alignment_log2));
  if (manifest.has(entry_concurrent)) line("concurrent", "yes, it may run at the same time as other code of a node");
  line("libraries", list(manifest.dependencies));
  line("undefined", list(manifest.imports));
  if (manifest.has(entry_library)) line("exports", list(manifest.exports));
  if (manifest.has(entry_against)) line("uses", list(manifest.against));
  const char* signed_by = "signed by";
  for (const auto& signature : bundle.signatures())
    line(std::exchange(signed_by, ""), fmt::format("{} ({}{})", key_text(signature), covered_name(bundle, signature),
                                                   holds(bundle, signature) ? "" : "; THE SIGNATURE IS WRONG"));
  fmt::format_to(std::back_inserter(out), "\n  {:<3} {:<26} {:<9} {:<8} {:<14} {:>16}  {}\n", "#", "triple", "role",
                 "form", "cpu or name", "bytes", "sha-256");
  for (size_t i = 0; i < manifest.slices.size(); ++i) describe_slice(out, i, bundle);
  return out;
}

std::string describe_json(const Bundle& bundle) {
  const auto& manifest = bundle.manifest();
  auto entries = nlohmann::ordered_json::array();
  for (const auto& name : entry_names)
    if (manifest.has(name.entry)) entries.push_back(fmt::format("{}_{}", manifest.name, name.suffix));
  auto slices = nlohmann::ordered_json::array();
  for (size_t i = 0; i < manifest.slices.size(); ++i) {
    const auto& slice = manifest.slices[i];
    slices.push_back({{"triple", slice.triple.text},
                      {"role", role_name(slice.role)},
                      {"form", form_name(slice.form)},
                      {"cpu", slice.cpu},
                      {"compressed", slice.compressed},
                      {"stored_bytes", slice.stored_size},
                      {"unpacked_bytes", slice.unpacked_size},
                      {"sha256", slice.hash.hex()},
                      {"present", bundle.holds(i)}});
  }
  auto signatures = nlohmann::ordered_json::array();
  for (const auto& signature : bundle.signatures())
    signatures.push_back({{"key", key_text(signature)},
                          {"covers", covered_name(bundle, signature)},
                          {"bundled", signature.covers != CodeSignature::whole_bundle},
                          {"valid", holds(bundle, signature)}});
  const nlohmann::ordered_json object = {{"name", manifest.name},
                                         {"content_id", bundle.id().hex()},
                                         {"bytes", bundle.bytes().size()},
                                         {"tool", manifest.tool},
                                         {"abi_version", manifest.abi_version},
                                         {"entries", entries},
                                         {"payload_form", manifest.has(entry_payload_init_2022) ? "2022"
                                                          : manifest.has(entry_payload_init)    ? "2021"
                                                                                                : "none"},
                                         {"payload_alignment_bytes", 1u << manifest.payload_alignment_log2},
                                         {"concurrent", manifest.has(entry_concurrent)},
                                         {"dependencies", manifest.dependencies},
                                         {"undefined", manifest.imports},
                                         {"exports", manifest.exports},
                                         {"uses", manifest.against},
                                         {"slices", slices},
                                         {"signatures", signatures}};
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tc::toolchain
