// SPDX-License-Identifier: Apache-2.0
//
// How good the plug-in's code is for the loops of src/target/jit/testdata/loops.c: GFLOP/s of saxpy and dot over
// arrays that stay in the first-level cache, compiled quick and tuned.
//
//   jit_loops PLUGIN LOOPS.bc [ROUNDS]
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
constexpr int calls = 2000;    // in each round

// Median and quartiles over the rounds.
template <class Call>
void report(const char* effort, const char* loop, int rounds, Call call) {
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const auto start = tc::now_ns();
    for (int i = 0; i < calls; ++i) call();
    rates.push_back(2.0 * length * calls / static_cast<double>(tc::now_ns() - start));
  }
  std::sort(rates.begin(), rates.end());
  const auto at = [&](size_t quarter) { return rates[quarter * (rates.size() - 1) / 4]; };
  std::printf("%-5s %-5s %6.1f (%.1f-%.1f) GFLOP/s\n", effort, loop, at(2), at(1), at(3));
}

tc::Status measure(Jit& jit, const tc::Bytes& bitcode, Effort effort, int rounds) {
  TC_ASSIGN(const auto object, jit.compile(bitcode, effort, "loops"));
  const auto resolve = [](const std::string& name) -> tc::Result<void*> {
    return tc::fail(TC_ERR_UNRESOLVED, "loops want {}", name);
  };
  TC_ASSIGN(const auto code, jit.link(object, "loops", resolve, {}));
  const auto saxpy = reinterpret_cast<void (*)(float, const float*, float*, long)>(code->symbol("saxpy"));
  const auto dot = reinterpret_cast<float (*)(const float*, const float*, long)>(code->symbol("dot"));
  alignas(64) static float x[length], y[length];
  std::fill(x, x + length, 1.0f);
  const char* name = effort == Effort::baseline ? "baseline" : "tuned";
  volatile float sink = 0;
  report(name, "saxpy", rounds, [&] { saxpy(0.001f, x, y, length); });
  report(name, "dot", rounds, [&] { sink = dot(x, y, length); });
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: jit_loops PLUGIN LOOPS.bc [ROUNDS]\n");
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const auto factory = library ? reinterpret_cast<JitFactory>(dlsym(library, jit_factory_name)) : nullptr;
  const std::unique_ptr<Jit> jit(factory ? factory(jit_plugin_version) : nullptr);
  const auto bitcode = tc::read_file(argv[2], 1u << 20);
  if (!jit || !bitcode) {
    std::fprintf(stderr, "jit_loops: %s\n", jit ? bitcode.error().message.c_str() : "cannot open the plug-in");
    return 1;
  }
  for (const auto effort : {Effort::baseline, Effort::tuned}) {
    if (auto done = measure(*jit, *bitcode, effort, argc > 3 ? std::atoi(argv[3]) : 51); !done) {
      std::fprintf(stderr, "jit_loops: %s\n", done.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
