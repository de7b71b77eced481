// SPDX-License-Identifier: Apache-2.0
//
// What the JIT plug-in costs by itself: compile and link of given bitcode in a warm process.
//
//   jit_floor PLUGIN ROUNDS FILE.bc...
//
// For each file and effort: median and quartiles of compile() and link() in µs, size of the object, bytes of linked
// memory. Undefined symbols resolve to a function that does nothing; nothing is called.
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

void nothing() {}

struct Spread {
  double low, median, high;  // quartiles in µs
};

Spread spread_of(std::vector<uint64_t>& times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return static_cast<double>(times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))]) / 1000;
  };
  return {at(0.25), at(0.5), at(0.75)};
}

tc::Status measure(Jit& jit, const char* path, Effort effort, int rounds) {
  TC_ASSIGN(const auto bitcode, tc::read_file(path, 64u << 20));
  std::vector<uint64_t> compiling, linking;
  size_t object_size = 0, linked_size = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto start = tc::now_ns();
    TC_ASSIGN(const auto object, jit.compile(bitcode, effort, path));
    const auto compiled = tc::now_ns();
    const auto resolve = [](const std::string&) -> tc::Result<void*> { return reinterpret_cast<void*>(&nothing); };
    TC_ASSIGN(const auto code, jit.link(object, path, resolve, {}));
    const auto linked = tc::now_ns();
    compiling.push_back(compiled - start);
    linking.push_back(linked - compiled);
    object_size = object.size();
    linked_size = code->bytes();
  }
  const auto compile = spread_of(compiling);
  const auto link = spread_of(linking);
  std::printf("%-40s %-5s compile %8.1f (%.1f-%.1f) µs  link %6.1f (%.1f-%.1f) µs  object %zu B  linked %zu B\n", path,
              effort == Effort::baseline ? "baseline" : "tuned", compile.median, compile.low, compile.high, link.median,
              link.low, link.high, object_size, linked_size);
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
