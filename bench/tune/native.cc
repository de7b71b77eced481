// SPDX-License-Identifier: Apache-2.0
#include "tune/native.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/file.h"
#include "base/process.h"
#include "common/embedded.h"

TC_EMBED(tune_kernels_source, TC_TUNE_SOURCE)
TC_EMBED(tune_work_header, TC_TUNE_HEADER)

namespace tc::bench {

namespace {

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

}  // namespace

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

}  // namespace tc::bench
