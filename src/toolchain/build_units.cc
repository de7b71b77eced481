// SPDX-License-Identifier: Apache-2.0
#include "toolchain/build_units.h"

#include <llvm/IR/Module.h>

#include <algorithm>

#include "base/file.h"
#include "toolchain/codegen.h"

namespace tc::toolchain {

namespace {

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
      TC_ASSIGN(const auto bitcode,
                compile(input(), language_, triple, {request_.clang_flags, request_.include_directory, name_}));
      TC_ASSIGN(auto module, parse(bitcode, *unit.context, label()));
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
  std::vector<Unit> units_;
};

}  // namespace

Result<std::vector<Unit>> import_units(const BuildRequest& request, const std::string& name, Language language) {
  return UnitImporter(request, name, language).run();
}

}  // namespace tc::toolchain
