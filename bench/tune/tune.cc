// SPDX-License-Identifier: Apache-2.0
#include "tune/tune.h"

#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "common/embedded.h"
#include "common/loaded_code.h"
#include "common/pinning.h"
#include "common/report.h"
#include "tune/native.h"
#include "tune/work.h"

TC_EMBED(tune_kernels_ifunc, TC_TUNE_IFUNC)

namespace tc::bench {

namespace {

using target::EntryPoint;

constexpr long elements = 2048;         // two arrays of 8 KiB
constexpr long text_bytes = 16 * 1024;  // of which the last one is found
constexpr double window_ns = 2e5;       // a measurement takes about that long: seldom interrupted

constexpr const char* build_names[] = {"generic", "tuned", "native"};

struct Data {
  alignas(64) float x[elements];
  alignas(64) float y[elements];
  alignas(64) unsigned char text[text_bytes];

  Data() {
    for (long i = 0; i < elements; ++i) x[i] = static_cast<float>(i % 17) / 16;
    std::fill(std::begin(y), std::end(y), 1.0f);
    std::fill(std::begin(text), std::end(text), static_cast<unsigned char>('a'));
    text[text_bytes - 1] = 'z';
  }
};

struct Kernel {
  const char* name;
  const char* unit;
  int number;
  long length;
  double work_per_call;  // operations or bytes
};

constexpr Kernel kernels[] = {
    {"saxpy", "gflops", tune_saxpy, elements, 2.0 * elements},
    {"dot", "gflops", tune_dot, elements, 2.0 * elements},
    {"search", "gbytes_per_s", tune_search, text_bytes, text_bytes},
};

tune_work work_for(const Kernel& kernel, Data& data, long times) {
  return {kernel.number, times, kernel.length, 1e-6f, data.x, data.y, data.text, 'z', 0, 0};
}

double run_ns(EntryPoint entry, tune_work& work) {
  const auto started = now_ns();
  entry(&work, sizeof work, nullptr);
  return static_cast<double>(now_ns() - started);
}

// The number of calls fill the window.
long times_for(const Kernel& kernel, EntryPoint entry, Data& data) {
  auto work = work_for(kernel, data, 64);
  double best = run_ns(entry, work);
  for (int i = 0; i < 20; ++i) best = std::min(best, run_ns(entry, work));
  return std::max(1L, std::lround(window_ns * 64 / best));
}

Status check_same(const Kernel& kernel, const std::array<EntryPoint, 3>& entries) {
  std::array<double, 3> results{};
  for (size_t b = 0; b < entries.size(); ++b) {
    const auto data = std::make_unique<Data>();
    auto work = work_for(kernel, *data, 1);
    entries[b](&work, sizeof work, nullptr);
    results[b] =
        std::accumulate(std::begin(data->y), std::end(data->y), 0.0) + work.sum + static_cast<double>(work.found);
    // Sums in another order differ in their last digits.
    if (std::abs(results[b] - results[0]) > std::abs(results[0]) * 1e-5)
      return fail(TC_ERR_INTERNAL, "{}: the {} build computes {} when the {} one computes {}", kernel.name,
                  build_names[b], results[b], build_names[0], results[0]);
  }
  return {};
}

Result<TuneKernel> measure(const Kernel& kernel, const std::array<EntryPoint, 3>& entries, int runs) {
  TC_CHECK(check_same(kernel, entries));
  const auto data = std::make_unique<Data>();
  std::array<long, 3> times{};
  for (size_t b = 0; b < entries.size(); ++b) times[b] = times_for(kernel, entries[b], *data);
  std::array<std::vector<double>, 3> rates;
  std::vector<double> to_native, to_generic;
  for (int run = 0; run < runs; ++run) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const size_t b = (i + static_cast<size_t>(run)) % entries.size();  // each is first in turn
      auto work = work_for(kernel, *data, times[b]);
      rates[b].push_back(kernel.work_per_call * static_cast<double>(times[b]) / run_ns(entries[b], work));
    }
    to_native.push_back(rates[1].back() / rates[2].back());
    to_generic.push_back(rates[1].back() / rates[0].back());
  }
  TuneKernel result{
      .name = kernel.name, .unit = kernel.unit, .rate = {}, .tuned_to_native = {}, .tuned_to_generic = {}};
  for (size_t b = 0; b < entries.size(); ++b) result.rate[b] = summarize(std::move(rates[b]));
  result.tuned_to_native = summarize(std::move(to_native));
  result.tuned_to_generic = summarize(std::move(to_generic));
  return result;
}

std::string format_json(const TuneResult& result) {
  Json root;
  root["bench"] = "tune";
  root["runs"] = result.options.runs;
  root["native_compiler"] = result.compiler;
  put_machine(root, result.machine);
  auto& list = root["kernels"] = Json::array();
  for (const auto& kernel : result.kernels) {
    auto& one = list.emplace_back();
    one["name"] = kernel.name;
    for (size_t b = 0; b < kernel.rate.size(); ++b) put(one, build_names[b] + ("_" + kernel.unit), kernel.rate[b]);
    put(one, "tuned_ratio_to_native", kernel.tuned_to_native);
    put(one, "tuned_ratio_to_generic", kernel.tuned_to_generic);
  }
  return text_of(root);
}

}  // namespace

Result<TuneResult> run_tune(const TuneOptions& options) {
  TuneResult result{.options = options, .machine = describe_machine(""), .compiler = {}, .kernels = {}};
  TC_ASSIGN(const auto native, compile_native_kernels());
  result.compiler = native.compiler;
  TC_ASSIGN(const auto generic, LoadedCode::load("tune_kernels", tune_kernels_ifunc(), SliceForm::object));
  TC_ASSIGN(const auto tuned, LoadedCode::load("tune_kernels", tune_kernels_ifunc(), SliceForm::bitcode));
  pin_to(0);
  for (const auto& kernel : kernels) {
    TC_ASSIGN(auto measured, measure(kernel, {generic.entry(), tuned.entry(), native.entry}, options.runs));
    result.kernels.push_back(std::move(measured));
  }
  return result;
}

std::string format_tune(const TuneResult& result) {
  if (result.options.json) return format_json(result);
  const auto introduction = fmt::format(
      "One source, three builds, in turn in one pinned process; {} runs, medians with quartiles.\n"
      "generic: the object slice; tuned: the bitcode slice, compiled here; native: clang -O3 -march=native\n"
      "({}).\n\n",
      result.options.runs, result.compiler);
  Table table(
      introduction,
      {{"", -8}, {"", 10}, {"generic", 26}, {"tuned", 26}, {"native", 26}, {"tuned / native", 24}, {"/ generic", 10}});
  for (const auto& kernel : result.kernels) {
    std::vector<std::string> cells{kernel.name, kernel.unit == "gflops" ? "GFLOP/s" : "GB/s"};
    for (const auto& rate : kernel.rate) cells.push_back(with_quartiles(rate, "{:.1f}"));
    cells.push_back(with_quartiles(kernel.tuned_to_native, "{:.2f}"));
    cells.push_back(number(kernel.tuned_to_generic.median, "{:.1f}"));
    table.row(cells);
  }
  return table.take();
}

}  // namespace tc::bench
