// SPDX-License-Identifier: Apache-2.0
//
// What the JIT plug-in costs by itself: compile and link of given bitcode in a warm process.
//
//   jit_floor PLUGIN ROUNDS FILE.bc...
//
// For each file and effort: median and quartiles of compile() and link() in µs, size of the object, bytes of linked
// memory. Undefined symbols resolve to a function that does nothing, and nothing is called, but for the loops `saxpy`
// and `dot` of src/target/jit/testdata/loops.c: GFLOP/s over arrays that stay in the first-level cache.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "target/jit_plugin.h"

namespace {

using namespace tc::target;

constexpr long length = 2048;  // two arrays of 8 KiB
constexpr int calls = 2000;    // of a loop in each round

void nothing() {}

struct Spread {
  double low, median, high;  // quartiles
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](size_t quarter) { return values[quarter * (values.size() - 1) / 4]; };
  return {at(1), at(2), at(3)};
}

double us_since(uint64_t start) { return static_cast<double>(tc::now_ns() - start) / 1000; }

template <class Call>
void report_rate(const char* effort, const char* loop, int rounds, Call call) {
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const auto start = tc::now_ns();
    for (int i = 0; i < calls; ++i) call();
    rates.push_back(2.0 * length * calls / static_cast<double>(tc::now_ns() - start));
  }
  const auto rate = spread_of(std::move(rates));
  std::printf("%-5s %-5s %6.1f (%.1f-%.1f) GFLOP/s\n", effort, loop, rate.median, rate.low, rate.high);
}

void measure_loops(const LinkedCode& code, const char* effort, int rounds) {
  const auto saxpy = reinterpret_cast<void (*)(float, const float*, float*, long)>(code.symbol("saxpy"));
  const auto dot = reinterpret_cast<float (*)(const float*, const float*, long)>(code.symbol("dot"));
  if (saxpy == nullptr || dot == nullptr) return;
  alignas(64) static float x[length], y[length];
  std::fill(x, x + length, 1.0f);
  volatile float sink = 0;
  report_rate(effort, "saxpy", rounds, [&] { saxpy(0.001f, x, y, length); });
  report_rate(effort, "dot", rounds, [&] { sink = dot(x, y, length); });
}

tc::Status measure(Jit& jit, const char* path, Effort effort, int rounds) {
  TC_ASSIGN(const auto bitcode, tc::read_file(path, 64u << 20));
  const char* const name = effort == Effort::baseline ? "baseline" : "tuned";
  std::vector<double> compiling, linking;
  std::unique_ptr<LinkedCode> code;
  size_t object_size = 0, linked_size = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto start = tc::now_ns();
    TC_ASSIGN(const auto object, jit.compile(bitcode, effort, Assembly::refused, path));
    compiling.push_back(us_since(start));
    const auto resolve = [](const std::string&) -> tc::Result<void*> { return reinterpret_cast<void*>(&nothing); };
    const auto compiled = tc::now_ns();
    TC_ASSIGN(code, jit.link(object, path, resolve, {}, nullptr));
    linking.push_back(us_since(compiled));
    object_size = object.size();
    linked_size = code->bytes();
  }
  const auto compile = spread_of(std::move(compiling));
  const auto link = spread_of(std::move(linking));
  std::printf("%-40s %-5s compile %8.1f (%.1f-%.1f) µs  link %6.1f (%.1f-%.1f) µs  object %zu B  linked %zu B\n", path,
              name, compile.median, compile.low, compile.high, link.median, link.low, link.high, object_size,
              linked_size);
  if (code != nullptr) measure_loops(*code, name, rounds);
  return {};
}

std::unique_ptr<Jit> open_plugin(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "jit_floor: %s\n", dlerror());
    return nullptr;
  }
  const auto factory = reinterpret_cast<JitFactory>(dlsym(library, jit_factory_name));
  return std::unique_ptr<Jit>(factory ? factory(jit_plugin_version) : nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: jit_floor PLUGIN ROUNDS FILE.bc...\n");
    return 2;
  }
  const auto opening = tc::now_ns();
  const auto jit = open_plugin(argv[1]);
  if (!jit) return 1;
  const auto opened = tc::now_ns();
  if (auto warm = jit->warm_up(); !warm) {
    std::fprintf(stderr, "jit_floor: %s\n", warm.error().message.c_str());
    return 1;
  }
  std::printf("open plug-in %.0f µs, warm up %.0f µs\n", static_cast<double>(opened - opening) / 1000,
              static_cast<double>(tc::now_ns() - opened) / 1000);
  for (int i = 3; i < argc; ++i) {
    for (const auto effort : {Effort::baseline, Effort::tuned}) {
      if (auto done = measure(*jit, argv[i], effort, std::atoi(argv[2])); !done) {
        std::fprintf(stderr, "jit_floor: %s: %s\n", argv[i], done.error().message.c_str());
        return 1;
      }
    }
  }
  return 0;
}
