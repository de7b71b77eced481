// SPDX-License-Identifier: Apache-2.0
#include "toolchain/build.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/file.h"
#include "toolchain/bitcode_writer.h"
#include "toolchain/codegen.h"
#include "toolchain/frontend.h"
#include "toolchain/importer.h"
#include "toolchain/link.h"
#include "toolchain/resolve.h"

#ifndef TC_TOOL_VERSION
#error "the build system says which version this is"
#endif
namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

Status check_name(const std::string& name) {
  const auto fits = [](char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); };
  if (name.empty() || name.size() > BundleLimits::name_bytes || !std::all_of(name.begin(), name.end(), fits) ||
      (name[0] >= '0' && name[0] <= '9'))
    return fail(TC_ERR_INVALID,
                "'{}' cannot be the name of an ifunc, because NAME_main must be a C function; give --name", name);
  return {};
}

// One triple's code, imported. The context owns what the modules are made of.
struct Unit {
  std::string triple;
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  Imported imported;
  Bytes signature;  // of a function of Python's
};

// The first half: compiles the source file for each target of the request, or reads its bitcode files, and imports what
// comes out. TC_ERR_INVALID when two of them are for the same target; else the errors of the front ends and the importer.
class UnitImporter {
 public:
  UnitImporter(const BuildRequest& request, const std::string& name, Language language)
      : request_(request), name_(name), language_(language) {}

  Result<std::vector<Unit>> run() {
    TC_CHECK(language_ == Language::llvm ? import_bitcode() : compile_source());
    return std::move(units_);
  }

 private:
  const std::filesystem::path& input() const { return request_.inputs.front(); }
  std::string label() const { return input().string(); }

  ImportOptions import_options() const {
    return {name_, label(), request_.allow_asm, request_.allow_ctors, request_.library, {}};
  }

  Status compile_source() {
    const auto targets = request_.targets.empty() ? default_targets() : request_.targets;
    for (const auto& triple : targets) {
      Unit unit;
      unit.triple = triple;
      TC_ASSIGN(auto compiled, compile(input(), language_, triple,
                                       {request_.clang_flags, request_.include_directory, name_}, diagnostics_));
      TC_ASSIGN(auto module, parse(compiled.bitcode, *unit.context, label()));
      unit.signature = std::move(compiled.signature);
      auto options = import_options();
      TC_ASSIGN(const auto wanted, TargetTriple::parse(triple));
      const auto made = TargetTriple::parse(module->getTargetTriple().str());
      if (made && !made->runs_on(wanted)) options.retarget = triple;  // its compiler knows its own machine only
      TC_ASSIGN(unit.imported, import_module(std::move(module), options));
      TC_CHECK(add_unit(std::move(unit)));
    }
    return {};
  }

  // Bitcode is for the triple that it says. Where --target asks for another one, the first file is made into it.
  Status import_bitcode() {
    for (const auto& file : request_.inputs) {
      TC_ASSIGN(auto unit, import_file(file, {}));
      TC_CHECK(add_unit(std::move(unit)));
    }
    if (request_.targets.empty()) return {};
    std::vector<Unit> made;
    for (const auto& triple : request_.targets) {
      TC_ASSIGN(const auto wanted, TargetTriple::parse(triple));
      const auto fits = [&](const auto& unit) {
        const auto has = TargetTriple::parse(unit.triple);
        return has && has->runs_on(wanted);
      };
      const auto found = std::find_if(units_.begin(), units_.end(), fits);
      if (found != units_.end()) continue;
      TC_ASSIGN(auto unit, import_file(input(), triple));
      made.push_back(std::move(unit));
    }
    for (auto& unit : made) TC_CHECK(add_unit(std::move(unit)));
    std::vector<Unit> asked_for;  // erasing would assign, and a context assigned to dies before its modules
    for (auto& unit : units_)
      if (is_asked_for(unit)) asked_for.push_back(std::move(unit));
    units_ = std::move(asked_for);
    return {};
  }

  bool is_asked_for(const Unit& unit) const {
    const auto has = TargetTriple::parse(unit.triple);
    return std::any_of(request_.targets.begin(), request_.targets.end(), [&](const auto& triple) {
      const auto wanted = TargetTriple::parse(triple);
      return has && wanted && has->runs_on(*wanted);
    });
  }

  // `triple`: what the bitcode is to be made into; empty: as it is.
  Result<Unit> import_file(const std::filesystem::path& file, const std::string& triple) {
    Unit unit;
    TC_ASSIGN(const auto bitcode, read_file(file, BundleLimits::slice_bytes));
    TC_ASSIGN(auto module, parse(bitcode, *unit.context, file.string()));
    unit.triple = module->getTargetTriple().str();
    if (auto known = check_triple(unit.triple); !known) return context(file.string(), known.error());
    auto options = import_options();
    options.label = file.string();
    if (!triple.empty()) {
      options.retarget = triple;
      unit.triple = triple;
    }
    TC_ASSIGN(unit.imported, import_module(std::move(module), options));
    return unit;
  }

  Status add_unit(Unit unit) {
    TC_ASSIGN(const auto triple, TargetTriple::parse(unit.triple));
    for (const auto& other : units_) {
      const auto has = TargetTriple::parse(other.triple);
      if (has && triple.runs_on(*has))
        return fail(TC_ERR_INVALID, "{} and {} are the same target: name it once", other.triple, unit.triple);
    }
    units_.push_back(std::move(unit));
    return {};
  }

  const BuildRequest& request_;
  const std::string& name_;
  const Language language_;
  Diagnostics diagnostics_;
  std::vector<Unit> units_;
};

// The second half: slices of all units, and the bundle.
class Builder {
 public:
  explicit Builder(const BuildRequest& request) : request_(request) {}

  Result<BuildResult> run() {
    TC_CHECK(check_request());
    TC_ASSIGN(units_, UnitImporter(request_, name_, language_).run());
    TC_CHECK(settle_libraries());
    TC_CHECK(settle_manifest());
    for (const auto& unit : units_) {
      TC_CHECK(add_slices(unit, unit.imported.target, SliceRole::target));
      if (unit.imported.source.module) TC_CHECK(add_slices(unit, unit.imported.source, SliceRole::source));
    }
    TC_CHECK(add_bundled());
    TC_CHECK(add_signature());
    manifest_.imports.assign(imports_.begin(), imports_.end());
    name_used_libraries();
    TC_ASSIGN(auto bundle, Bundle::pack(std::move(manifest_), std::move(stored_)));
    return BuildResult{std::move(bundle), std::move(warnings_)};
  }

 private:
  const fs::path& input() const { return request_.inputs.front(); }
  std::string label() const { return input().string(); }

  Status check_request() {
    if (request_.inputs.empty()) return fail(TC_ERR_INVALID, "no source file given");
    name_ = request_.name.empty() ? input().stem().string() : request_.name;
    TC_ASSIGN(language_, language_of(input()));
    for (const auto& file : request_.inputs) {
      std::error_code error;
      if (!fs::is_regular_file(file, error)) return fail(TC_ERR_NOT_FOUND, "{}: there is no such file", file.string());
      if (fs::file_size(file, error) == 0) return fail(TC_ERR_INVALID, "{}: the file is empty", file.string());
      TC_ASSIGN(const auto language, language_of(file));
      if (request_.inputs.size() > 1 && language != Language::llvm)
        return fail(TC_ERR_INVALID,
                    "{}: an ifunc is one source file; several inputs must be bitcode, one for each triple",
                    file.string());
    }
    TC_CHECK(check_name(name_));
    if (!request_.objects && !request_.bitcode)
      return fail(TC_ERR_INVALID, "--no-object and --no-bitcode together leave nothing to ship");
    for (const auto& triple : request_.targets) TC_CHECK(check_target(triple));
    return {};
  }

  static Status check_target(const std::string& triple) {
    const auto known = check_triple(triple);
    if (known) return {};
    const auto* const meant = meant_target(triple);
    return fail(known.error().code, "{}; {}`--target list` prints what there is", known.error().message,
                meant != nullptr && triple != meant ? fmt::format("did you mean '{}'? ", meant) : "");
  }

  Status settle_libraries() {
    TC_ASSIGN(auto names, read_dependency_file(fs::path(input()).replace_extension(".deps")));
    for (const auto& unit : units_)
      names.libraries.insert(names.libraries.end(), unit.imported.libraries.begin(), unit.imported.libraries.end());
    TC_CHECK(find_libraries(names.libraries, resolution_.libraries));
    // The payload functions run in the process that sends: its C library is there without being asked for.
    const bool has_source = units_.front().imported.source.module != nullptr;
    if (has_source) names.source_libraries.insert(names.source_libraries.end(), {"c", "m"});
    TC_CHECK(find_libraries(names.source_libraries, resolution_.source_libraries));
    resolution_.externs = request_.externs;
    for (const auto& file : request_.against) {
      TC_ASSIGN(const auto bytes, read_file(file, BundleLimits::bundle_bytes));
      const auto library = Bundle::read(bytes);
      if (!library) return context(file.string(), library.error());
      const auto& exports = library->manifest().exports;
      if (exports.empty())
        return fail(TC_ERR_INVALID, "{}: '{}' is no library; build it with --library", file.string(),
                    library->manifest().name);
      resolution_.externs.insert(resolution_.externs.end(), exports.begin(), exports.end());
      against_.emplace_back(library->manifest().name, exports);
    }
    return {};
  }

  // Targets look for symbols; the names are for the message that a symbol is missing.
  void name_used_libraries() {
    std::set<std::string> names;
    for (const auto& [name, exports] : against_)
      if (std::ranges::any_of(exports, [this](const auto& symbol) { return imports_.contains(symbol); }))
        names.insert(name);
    manifest_.against.assign(names.begin(), names.end());
    if (!names.empty()) manifest_.entries |= entry_against;
  }

  Status find_libraries(const std::vector<std::string>& names, std::vector<Library>& libraries) {
    for (const auto& name : names) {
      auto library = find_library(name);
      if (!library) return context(label(), library.error());
      const auto known = [&](const auto& other) { return other.soname == library->soname; };
      if (std::any_of(libraries.begin(), libraries.end(), known)) continue;
      if (!library->found)
        warnings_.push_back(fmt::format(
            "{}: library '{}' is not on this machine: undefined symbols are taken to be its own", label(), name));
      libraries.push_back(std::move(*library));
    }
    return {};
  }

  Status settle_manifest() {
    const auto& first = units_.front().imported;
    for (const auto& unit : units_) {
      if ((unit.imported.entries ^ first.entries) & entry_concurrent) {
        const bool is_first = (first.entries & entry_concurrent) != 0;
        return fail(TC_ERR_INVALID, "{}: is TC_CONCURRENT for {} and not for {}; all slices of an ifunc say the same",
                    label(), is_first ? units_.front().triple : unit.triple,
                    is_first ? unit.triple : units_.front().triple);
      }
      if (unit.imported.entries != first.entries || unit.imported.exports != first.exports ||
          unit.imported.alignment_log2 != first.alignment_log2)
        return fail(TC_ERR_INVALID,
                    "{}: has other entry points, exports or another TC_PAYLOAD_ALIGN for {} than for {}", label(),
                    unit.triple, units_.front().triple);
    }
    manifest_.name = name_;
    manifest_.entries = first.entries;
    manifest_.exports = first.exports;
    manifest_.payload_alignment_log2 = first.alignment_log2;
    manifest_.tool = "ifunc " TC_TOOL_VERSION;
    for (const auto& library : resolution_.libraries) manifest_.dependencies.push_back(library.soname);
    return {};
  }

  Status add_slices(const Unit& unit, const ImportedSlice& code, SliceRole role) {
    TC_CHECK(check_resolvable(code.undefined, role, resolution_, name_));
    TC_ASSIGN(const auto triple, TargetTriple::parse(unit.triple));
    std::set<std::string> undefined;
    for (const auto& symbol : code.undefined) undefined.insert(symbol.symbol);

    // Machine code is generated in any case: only then does it show what the code generator itself calls.
    const auto baseline = baseline_for(triple);
    Bytes object;
    if (baseline) {
      auto generated = generate_object(*code.module, *baseline, label());
      if (!generated && request_.objects) return fail(std::move(generated).error());
      if (generated) {
        object = std::move(*generated);
        TC_ASSIGN(const auto needed, undefined_in_object(object, label()));
        TC_CHECK(check_needed(needed, undefined, role));
      }
    }
    if (request_.bitcode) {
      if (baseline) TC_CHECK(check_first_calls(code, *baseline, undefined, role));
      TC_CHECK(
          add_slice({triple, role, SliceForm::bitcode, false, "", 0, 0, {}}, write_smallest_bitcode(*code.module)));
    }
    if (request_.objects) TC_CHECK(add_object(triple, code, role, baseline, object));
    if (role == SliceRole::target) imports_.insert(undefined.begin(), undefined.end());
    return {};
  }

  // Symbols that only machine code has: memcpy for a large assignment, sin for a vector of sines.
  Status check_needed(const std::vector<std::string>& needed, std::set<std::string>& undefined, SliceRole role) const {
    std::vector<Undefined> added;
    for (const auto& symbol : needed)
      if (undefined.insert(symbol).second) added.push_back({symbol, label(), true});
    return check_resolvable(added, role, resolution_, name_);
  }

  // A node that compiles the bitcode does so with little effort first, and that keeps calls which optimising drops. What it
  // cannot compile is not refused here: nodes have other CPUs.
  Status check_first_calls(const ImportedSlice& code, const Baseline& baseline, std::set<std::string>& undefined,
                           SliceRole role) const {
    const auto object = generate_first_object(*code.module, baseline, label());
    if (!object) return {};
    TC_ASSIGN(auto needed, undefined_in_object(*object, label()));
    std::erase_if(needed, is_compiler_runtime);  // every node has it
    return check_needed(needed, undefined, role);
  }

  Status add_object(const TargetTriple& triple, const ImportedSlice& code, SliceRole role,
                    const std::optional<Baseline>& baseline, const Bytes& object) {
    const auto* const why =
        !baseline             ? "the object loader knows x86_64, aarch64 and riscv64 only, so it is bitcode alone"
        : code.has_exceptions ? "C++ exceptions need unwind tables, which the object loader does not register"
                              : nullptr;
    if (why) {
      if (!request_.bitcode)
        return fail(TC_ERR_UNSUPPORTED, "{}: no object slice for {}: {}", label(), triple.text, why);
      warnings_.push_back(fmt::format("{}: no object slice for {}: {}", label(), triple.text, why));
      return {};
    }
    TC_ASSIGN(auto linked, link_object(object, triple, label()));
    return add_slice({triple, role, SliceForm::object, false, baseline->cpu, 0, 0, {}}, std::move(linked));
  }

  Status add_bundled() {
    std::set<std::string> names;
    for (const auto& file : request_.bundled) {
      TC_ASSIGN(auto bytes, read_file(file, BundleLimits::bundle_bytes));
      const auto bundled = Bundle::read(bytes);
      if (!bundled) return context(file.string(), bundled.error());
      const auto& name = bundled->manifest().name;
      if (!names.insert(name).second)
        return fail(TC_ERR_INVALID, "{}: two bundled ifuncs have the name '{}', by which they are sent", label(), name);
      TC_CHECK(add_slice({{}, SliceRole::bundled, SliceForm::bundle, false, name, 0, 0, {}}, std::move(bytes)));
    }
    return {};
  }

  // What callers in Python pass and get (docs/wire-format.md). It is the last slice, and not compressed, as where the
  // package itself adds it: the same function has the same content id either way.
  Status add_signature() {
    const auto& text = units_.front().signature;
    for (const auto& unit : units_)
      if (unit.signature != text)
        return fail(TC_ERR_INVALID, "{}: takes other arguments, or has another answer, for {} than for {}", label(),
                    unit.triple, units_.front().triple);
    if (text.empty()) return {};
    TC_ASSIGN(const auto place, TargetTriple::parse(python_signature));
    manifest_.slices.push_back({place, SliceRole::source, SliceForm::bitcode, false, "", 0, 0, {}});
    stored_.push_back(text);
    return {};
  }

  // Objects are for running at once: they are compressed only when large, and when it saves much.
  Status add_slice(Slice slice, Bytes bytes) {
    slice.unpacked_size = static_cast<uint32_t>(bytes.size());
    TC_ASSIGN(auto packed, compress(bytes));
    const bool is_object = slice.form == SliceForm::object;
    const bool pays =
        is_object ? bytes.size() > 2048 && packed.size() * 10 <= bytes.size() * 7 : packed.size() + 64 < bytes.size();
    slice.compressed = pays;
    manifest_.slices.push_back(std::move(slice));
    stored_.push_back(pays ? std::move(packed) : std::move(bytes));
    return {};
  }

  const BuildRequest& request_;
  std::string name_;
  Language language_ = Language::c;
  std::vector<Unit> units_;
  Resolution resolution_;
  Manifest manifest_;
  std::vector<Bytes> stored_;
  std::set<std::string> imports_;
  std::vector<std::pair<std::string, std::vector<std::string>>> against_;  // libraries and what they export
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> default_targets() { return {"x86_64-linux-gnu", "aarch64-linux-gnu"}; }

Result<BuildResult> build(const BuildRequest& request) { return Builder(request).run(); }

}  // namespace tc::toolchain
