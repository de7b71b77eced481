// SPDX-License-Identifier: Apache-2.0
#include "tune/tune.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "common/embedded.h"
#include "common/loaded_code.h"
#include "common/machine.h"
#include "common/report.h"
#include "tune/work.h"

TC_EMBED(tune_kernels_source, TC_TUNE_SOURCE)
TC_EMBED(tune_work_header, TC_TUNE_HEADER)
TC_EMBED(tune_kernels_ifunc, TC_TUNE_IFUNC)

namespace tc::bench {

namespace {

using target::EntryPoint;

constexpr long elements = 2048;         // two arrays of 8 KiB
constexpr long text_bytes = 16 * 1024;  // of which the last one is found
constexpr double window_ns = 2e5;       // a measurement takes about that long: seldom interrupted

// The order of the columns.
enum class Build : uint8_t { generic, tuned, native };
constexpr std::array builds{Build::generic, Build::tuned, Build::native};
constexpr std::array<const char*, 3> build_names{"generic", "tuned", "native"};

// The kernels, compiled for this machine now, because the machine that built the benchmark may have been another one.
struct NativeKernels {
  std::shared_ptr<void> library;  // keeps the code there
  target::EntryPoint entry = nullptr;
  std::string compiler;  // its first line of --version
};

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

// The first line of what the compiler says of itself; nothing when it cannot be run.
std::string version_of(const std::string& compiler) {
  const auto finished = run_program({compiler, "--version"}, {.output = Output::captured, .errors = Output::discarded});
  if (!finished || !finished->exit.success()) return {};
  return finished->output.substr(0, finished->output.find('\n'));
}

Result<std::string> find_clang(std::string& version) {
  std::vector<std::string> names = {"clang-22", "clang"};
  if (const char* const named = std::getenv("TC_CLANG")) names = {named};
  for (const auto& name : names)
    if (version = version_of(name); !version.empty()) return name;
  return fail(TC_ERR_NOT_FOUND, "there is no {} to compile the kernels with -march=native; install clang-22",
              fmt::join(names, " or "));
}

// With TC_CLANG, clang-22 or clang, -O3 -march=native. TC_ERR_NOT_FOUND when there is none, TC_ERR_COMPILE.
Result<NativeKernels> compile_native_kernels() {
  NativeKernels kernels;
  TC_ASSIGN(const auto clang, find_clang(kernels.compiler));
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto source = scratch.path() / "tune_kernels.c", output = scratch.path() / "native.so";
  TC_CHECK(write_file_atomically(source.string(), tune_kernels_source()));
  TC_CHECK(write_file_atomically((scratch.path() / "work.h").string(), tune_work_header()));
  const std::vector<std::string> command{clang,       "-O3", "-march=native", "-std=gnu17",   "-fPIC", "-shared",
                                         "-nostdlib", "-o",  output.string(), source.string()};
  TC_ASSIGN(const auto finished, run_program(command));
  if (!finished.exit.success()) return fail(TC_ERR_COMPILE, "`{}` {}", fmt::join(command, " "), finished.exit.text());
  void* const library = dlopen(output.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(TC_ERR_IO, "the native kernels cannot be opened: {}", dlerror());
  kernels.library = std::shared_ptr<void>(library, [](void* handle) { dlclose(handle); });
  kernels.entry = reinterpret_cast<target::EntryPoint>(dlsym(library, "tune_kernels_main"));
  if (kernels.entry == nullptr) return fail(TC_ERR_INTERNAL, "the native kernels have no entry");
  return kernels;
}

// Operations or bytes per ns: 1e9 a second.
Result<Samples<Build>> measure(const Kernel& kernel, const std::array<EntryPoint, 3>& entries, int runs) {
  TC_CHECK(check_same(kernel, entries));
  const auto data = std::make_unique<Data>();
  std::array<long, 3> times{};
  for (size_t b = 0; b < entries.size(); ++b) times[b] = times_for(kernel, entries[b], *data);
  Samples<Build> rates;
  for (int run = 0; run < runs; ++run)
    for (size_t i = 0; i < entries.size(); ++i) {
      const size_t b = (i + static_cast<size_t>(run)) % entries.size();  // each is first in turn
      auto work = work_for(kernel, *data, times[b]);
      rates.add(builds[b], kernel.work_per_call * static_cast<double>(times[b]) / run_ns(entries[b], work));
    }
  return rates;
}

}  // namespace

Result<Report> run_tune(const TuneOptions& options) {
  const auto machine = describe_machine("");
  TC_ASSIGN(const auto native, compile_native_kernels());
  TC_ASSIGN(const auto generic, LoadedCode::load("tune_kernels", tune_kernels_ifunc(), SliceForm::object));
  TC_ASSIGN(const auto tuned, LoadedCode::load("tune_kernels", tune_kernels_ifunc(), SliceForm::bitcode));
  pin_to(0);
  auto list = Json::array();
  Table table(
      fmt::format(
          "One source, three builds, in turn in one pinned process; {} runs, medians with quartiles.\n"
          "generic: the object slice; tuned: the bitcode slice, compiled here; native: clang -O3 -march=native\n"
          "({}).\n\n",
          options.runs, native.compiler),
      {{"", -8}, {"", 10}, {"generic", 26}, {"tuned", 26}, {"native", 26}, {"tuned / native", 24}, {"/ generic", 10}});
  for (const auto& kernel : kernels) {
    TC_ASSIGN(const auto rate, measure(kernel, {generic.entry(), tuned.entry(), native.entry}, options.runs));
    const auto to_native = rate.ratio(Build::tuned, Build::native),
               to_generic = rate.ratio(Build::tuned, Build::generic);
    auto& one = list.emplace_back();
    one["name"] = kernel.name;
    std::vector<std::string> cells{kernel.name, std::string_view(kernel.unit) == "gflops" ? "GFLOP/s" : "GB/s"};
    for (size_t b = 0; b < builds.size(); ++b) {
      put(one, fmt::format("{}_{}", build_names[b], kernel.unit), rate.of(builds[b]));
      cells.push_back(with_quartiles(rate.of(builds[b]), "{:.1f}"));
    }
    put(one, "tuned_ratio_to_native", to_native);
    put(one, "tuned_ratio_to_generic", to_generic);
    cells.push_back(with_quartiles(to_native, "{:.2f}"));
    cells.push_back(number(to_generic.median, "{:.1f}"));
    table.row(cells);
  }
  Json root;
  root["bench"] = "tune";
  root["runs"] = options.runs;
  root["native_compiler"] = native.compiler;
  put_machine(root, machine);
  root["kernels"] = std::move(list);
  return Report{table.take(), std::move(root)};
}

}  // namespace tc::bench
