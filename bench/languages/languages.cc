// SPDX-License-Identifier: Apache-2.0
#include "languages/languages.h"

#include <bit>
#include <cmath>
#include <optional>

#include "05-pointer-chase/chase.h"
#include "base/clock.h"
#include "common/embedded.h"
#include "common/loaded_code.h"
#include "common/machine.h"
#include "common/stand_in_host.h"
#include "languages/instructions.h"

TC_EMBED(languages_dot_c, TC_DOT_C)
TC_EMBED(languages_dot_julia, TC_DOT_JULIA)
TC_EMBED(languages_dot_rust, TC_DOT_RUST)

namespace tc::bench {

namespace {

constexpr size_t pairs = 1024;            // two arrays of 8 KiB: in the first-level cache
constexpr uint64_t chase_entries = 2048;  // the same
constexpr uint32_t chase_depth = 2000;
constexpr double window_ns = 2e5;  // a measurement takes about that long: seldom interrupted

// One language's code for one kernel, in one form.
struct LanguageCode {
  std::string language;
  Summary ns;                            // of a call
  Summary to_c;                          // the runs' own ratios of times
  std::optional<uint64_t> instructions;  // of a call; nothing where they cannot be counted
};

struct LanguagesKernel {
  std::string name;
  std::string form;                 // "tuned": the bitcode, compiled here; "generic": the object slice
  std::vector<LanguageCode> codes;  // C's first
};

struct Kernel {
  const char* name;  // of the ifunc too
  bool is_number;    // the answer is a double, summed in any order
  Result<Bytes> (*build)(const std::string& language);
};

Result<Bytes> build_dot(const std::string& language) {
  if (language == "c") return build_ifunc("dot", {{"dot.c", languages_dot_c()}});
  if (language == "rust") return build_ifunc("dot", {{"dot.rs", languages_dot_rust()}});
  return build_ifunc("dot", {{"dot.jl", languages_dot_julia()}});
}

constexpr Kernel kernels[] = {{"dot", true, build_dot}, {"chaser", false, build_chaser}};

// What the kernels work on.
struct Data {
  Data() : numbers(2 * pairs), table(chase_entries) {
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 17) / 16;
    chase_fill(table.data(), table.size(), 42);
  }
  std::vector<double> numbers;
  std::vector<uint64_t> table;
};

// One language's code, and its calls.
class Loaded {
 public:
  explicit Loaded(LoadedCode code) : code_(std::move(code)) {}

  void call() const {
    struct chase chase = {5, chase_depth, CHASE_TO_CALLER};
    code_.entry()(&chase, sizeof chase, nullptr);
  }
  double calls_ns(long times) const {
    const auto started = now_ns();
    for (long i = 0; i < times; ++i) call();
    return static_cast<double>(now_ns() - started);
  }
  // The number of calls that fill the window.
  long times() const {
    double best = calls_ns(16);
    for (int i = 0; i < 20; ++i) best = std::min(best, calls_ns(16));
    return std::max(1L, std::lround(window_ns * 16 / best));
  }

 private:
  LoadedCode code_;
};

bool is_same(const Kernel& kernel, uint64_t one, uint64_t other) {
  if (!kernel.is_number) return one == other;
  const auto a = std::bit_cast<double>(one), b = std::bit_cast<double>(other);
  return std::abs(a - b) <= std::abs(a) * 1e-12;
}

Status check_answers(const Kernel& kernel, const std::vector<Loaded>& loaded, const LanguagesKernel& result,
                     StandInHost& host) {
  uint64_t expected = 0;
  for (size_t i = 0; i < loaded.size(); ++i) {
    host.answer = 0;
    loaded[i].call();
    if (!host.failed.empty())
      return fail(TC_ERR_INTERNAL, "{} in {} failed: {}", kernel.name, result.codes[i].language, host.failed);
    if (i == 0) expected = host.answer;
    if (host.answer == 0 || !is_same(kernel, expected, host.answer))
      return fail(TC_ERR_INTERNAL, "{} in {} answers {:#x} when it is {:#x} in C", kernel.name,
                  result.codes[i].language, host.answer, expected);
  }
  return {};
}

void measure(const std::vector<Loaded>& loaded, int runs, LanguagesKernel& result) {
  const auto count = loaded.size();
  Samples<size_t> ns;
  const long times = loaded[0].times();
  for (int run = 0; run < runs; ++run)
    for (size_t k = 0; k < count; ++k) {
      const size_t i = (k + static_cast<size_t>(run)) % count;  // each is first in turn
      ns.add(i, loaded[i].calls_ns(times) / static_cast<double>(times));
    }
  for (size_t i = 0; i < count; ++i) {
    auto& code = result.codes[i];
    code.ns = ns.of(i);
    code.to_c = ns.ratio(i, 0);
    code.instructions = count_instructions([&] { loaded[i].call(); });
  }
}

Result<LanguagesKernel> compare(const Kernel& kernel, SliceForm form, const std::vector<Bytes>& bundles,
                                const std::vector<std::string>& languages, int runs) {
  LanguagesKernel result{kernel.name, form == SliceForm::bitcode ? "tuned" : "generic", {}};
  std::vector<Loaded> loaded;
  for (size_t i = 0; i < bundles.size(); ++i) {
    TC_ASSIGN(auto code, LoadedCode::load(kernel.name, bundles[i], form));
    loaded.emplace_back(std::move(code));
    result.codes.push_back({languages[i], {}, {}, {}});
  }
  Data data;
  StandInHost host;
  host.expose(kernel.is_number ? std::as_writable_bytes(std::span(data.numbers))
                               : std::as_writable_bytes(std::span(data.table)));
  target::current_host = &host;
  auto checked = check_answers(kernel, loaded, result, host);
  if (checked) measure(loaded, runs, result);
  target::current_host = nullptr;
  if (!checked) return fail(std::move(checked).error());
  return result;
}

double instructions_to_c(const LanguagesKernel& kernel, const LanguageCode& code) {
  const auto c = kernel.codes.front().instructions.value_or(0);
  return c == 0 ? 0 : static_cast<double>(code.instructions.value_or(0)) / static_cast<double>(c);
}

Json json_of(const LanguagesOptions& options, const Machine& machine, const std::vector<LanguagesKernel>& compared) {
  Json root;
  root["bench"] = "languages";
  root["runs"] = options.runs;
  put_machine(root, machine);
  auto& list = root["kernels"] = Json::array();
  for (const auto& kernel : compared) {
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
  return root;
}

std::string table_of(const LanguagesOptions& options, const Machine& machine,
                     const std::vector<LanguagesKernel>& compared) {
  const auto introduction = fmt::format(
      "One ifunc in several languages, in turn in one pinned process, {}; {} runs, medians with quartiles.\n"
      "tuned: the bitcode, compiled for this CPU; generic: the object slice. Ratios are those of a run.\n\n",
      machine.cpu, options.runs);
  Table table(
      introduction,
      {{"", -8}, {"form", -9}, {"", -8}, {"ns a call", 26}, {"time x C", 26}, {"instructions", 14}, {"x C", 8}});
  for (const auto& kernel : compared)
    for (const auto& code : kernel.codes) {
      table.row({kernel.name, kernel.form, code.language, with_quartiles(code.ns, "{:.0f}"),
                 with_quartiles(code.to_c, "{:.3f}"), code.instructions ? std::to_string(*code.instructions) : "-",
                 code.instructions ? number(instructions_to_c(kernel, code), "{:.3f}") : ""});
    }
  return table.take();
}

}  // namespace

Result<Report> run_languages(const LanguagesOptions& options) {
  const auto machine = describe_machine("");
  std::vector<LanguagesKernel> compared;
  std::vector<std::string> languages{"c"};
  for (const auto& language : options.languages)
    if (language != "c") languages.push_back(language);
  std::vector<std::vector<Bytes>> bundles;
  for (const auto& kernel : kernels) {
    auto& made = bundles.emplace_back();
    for (const auto& language : languages) {
      TC_ASSIGN(auto bundle, kernel.build(language));
      made.push_back(std::move(bundle));
    }
  }
  pin_to(0);
  for (size_t k = 0; k < std::size(kernels); ++k)
    for (const auto form : {SliceForm::bitcode, SliceForm::object}) {
      TC_ASSIGN(compared.emplace_back(), compare(kernels[k], form, bundles[k], languages, options.runs));
    }
  return Report{table_of(options, machine, compared), json_of(options, machine, compared)};
}

}  // namespace tc::bench
