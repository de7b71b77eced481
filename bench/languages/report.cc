// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "common/json.h"
#include "languages/languages.h"

namespace tc::bench {

namespace {

double instructions_to_c(const LanguagesKernel& kernel, const LanguageCode& code) {
  const auto c = kernel.codes.front().instructions.value_or(0);
  return c == 0 ? 0 : static_cast<double>(code.instructions.value_or(0)) / static_cast<double>(c);
}

std::string format_json(const LanguagesResult& result) {
  nlohmann::ordered_json root;
  root["bench"] = "languages";
  root["runs"] = result.options.runs;
  put_machine(root, result.machine);
  auto& list = root["kernels"] = nlohmann::ordered_json::array();
  for (const auto& kernel : result.kernels) {
    auto& one = list.emplace_back();
    one["name"] = kernel.name;
    one["form"] = kernel.form;
    for (const auto& code : kernel.codes) {
      auto& entry = one[code.language];
      put(entry, "call_ns", code.ns);
      put(entry, "time_ratio_to_c", code.to_c);
      if (!code.instructions) continue;
      entry["instructions"] = *code.instructions;
      entry["instructions_ratio_to_c"] = instructions_to_c(kernel, code);
    }
  }
  return root.dump(2) + "\n";
}

}  // namespace

std::string format_languages(const LanguagesResult& result) {
  if (result.options.json) return format_json(result);
  auto out = fmt::format(
      "One ifunc in several languages, in turn in one pinned process, {}; {} runs, medians with quartiles.\n"
      "tuned: the bitcode, compiled for this CPU; generic: the object slice. Ratios are those of a run.\n\n"
      "{:<8}{:<9}{:<8}{:>26}{:>26}{:>14}{:>8}\n",
      result.machine.cpu, result.options.runs, "", "form", "", "ns a call", "time x C", "instructions", "x C");
  for (const auto& kernel : result.kernels)
    for (const auto& code : kernel.codes) {
      const auto& [ns, to_c] = std::pair(code.ns, code.to_c);
      out += fmt::format("{:<8}{:<9}{:<8}{:>26}{:>26}", kernel.name, kernel.form, code.language,
                         fmt::format("{:.0f} [{:.0f}, {:.0f}]", ns.median, ns.low, ns.high),
                         fmt::format("{:.3f} [{:.3f}, {:.3f}]", to_c.median, to_c.low, to_c.high));
      out += code.instructions ? fmt::format("{:>14}{:>8.3f}\n", *code.instructions, instructions_to_c(kernel, code))
                               : fmt::format("{:>14}\n", "-");
    }
  return out;
}

}  // namespace tc::bench
