// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <fmt/format.h>

#include "languages/languages.h"

namespace tc::bench {

namespace {

double instructions_to_c(const LanguagesKernel& kernel, const LanguageCode& code) {
  const auto c = kernel.codes.front().instructions.value_or(0);
  return c == 0 ? 0 : static_cast<double>(code.instructions.value_or(0)) / static_cast<double>(c);
}

std::string format_json(const LanguagesResult& result) {
  Json root;
  root["bench"] = "languages";
  root["runs"] = result.options.runs;
  put_machine(root, result.machine);
  auto& list = root["kernels"] = Json::array();
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
  return text_of(root);
}

}  // namespace

std::string format_languages(const LanguagesResult& result) {
  if (result.options.json) return format_json(result);
  const auto introduction = fmt::format(
      "One ifunc in several languages, in turn in one pinned process, {}; {} runs, medians with quartiles.\n"
      "tuned: the bitcode, compiled for this CPU; generic: the object slice. Ratios are those of a run.\n\n",
      result.machine.cpu, result.options.runs);
  Table table(
      introduction,
      {{"", -8}, {"form", -9}, {"", -8}, {"ns a call", 26}, {"time x C", 26}, {"instructions", 14}, {"x C", 8}});
  for (const auto& kernel : result.kernels)
    for (const auto& code : kernel.codes) {
      table.row({kernel.name, kernel.form, code.language, with_quartiles(code.ns, "{:.0f}"),
                 with_quartiles(code.to_c, "{:.3f}"), code.instructions ? std::to_string(*code.instructions) : "-",
                 code.instructions ? number(instructions_to_c(kernel, code), "{:.3f}") : ""});
    }
  return table.take();
}

}  // namespace tc::bench
