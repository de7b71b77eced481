// SPDX-License-Identifier: Apache-2.0
#include "tune/native.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "common/embedded.h"
#include "common/machine.h"

TC_EMBED(tune_kernels_source, TC_TUNE_SOURCE)
TC_EMBED(tune_work_header, TC_TUNE_HEADER)

namespace tc::bench {

namespace {

// The command's first line; nothing when it failed.
std::string first_line_of(const std::string& command) {
  std::array<char, 256> line{};
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return {};
  const bool any = std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pclose(pipe) != 0 || !any) return {};
  std::string text(line.data());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Result<std::string> find_clang(std::string& version) {
  std::vector<std::string> names = {"clang-22", "clang"};
  if (const char* const named = std::getenv("TC_CLANG")) names = {named};
  for (const auto& name : names)
    if (version = first_line_of(shell_quoted(name) + " --version"); !version.empty()) return name;
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
  const auto command = fmt::format("{} -O3 -march=native -std=gnu17 -fPIC -shared -nostdlib -o {} {}",
                                   shell_quoted(clang), shell_quoted(output.string()), shell_quoted(source.string()));
  if (const int status = std::system(command.c_str()); status != 0)
    return fail(TC_ERR_COMPILE, "`{}` ended with status {}", command, status);
  void* const library = dlopen(output.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(TC_ERR_IO, "the native kernels cannot be opened: {}", dlerror());
  kernels.library = std::shared_ptr<void>(library, [](void* handle) { dlclose(handle); });
  kernels.entry = reinterpret_cast<target::EntryPoint>(dlsym(library, "tune_kernels_main"));
  if (kernels.entry == nullptr) return fail(TC_ERR_INTERNAL, "the native kernels have no entry");
  return kernels;
}

}  // namespace tc::bench
