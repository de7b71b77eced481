// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/pack.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/process.h"

namespace tc::ucp {

namespace fs = std::filesystem;

namespace {

// Beside the library that this code is in, in a build tree and after installation alike.
Result<std::string> toolchain_program() {
  std::vector<fs::path> folders;
  if (const char* const chosen = std::getenv("TC_LIBEXEC")) folders.emplace_back(chosen);
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&toolchain_program), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code ignored;
    const auto lib = fs::canonical(info.dli_fname, ignored).parent_path();
    folders.push_back(lib.parent_path() / "libexec/threechains");
    folders.push_back(lib.parent_path().parent_path() / "libexec/threechains");  // lib/ARCH-linux-gnu
  }
  std::string tried;
  for (const auto& folder : folders) {
    const auto program = (folder / "ifunc-toolchain").string();
    if (::access(program.c_str(), X_OK) == 0) return program;
    tried += (tried.empty() ? "" : ", ") + program;
  }
  return fail(TC_ERR_UNSUPPORTED,
              "loose bitcode is packed by ifunc-toolchain, and there is none at {}: install it, name its directory "
              "with TC_LIBEXEC, or make the .ifunc file beforehand with `ifunc build`",
              tried);
}

}  // namespace

Result<Bundle> pack(const std::string& name, const LooseBitcode& loose) {
  TC_ASSIGN(const auto program, toolchain_program());
  TC_ASSIGN(const auto directory, TemporaryDirectory::create());
  const auto output = directory.path() / "packed.ifunc";
  std::vector<std::string> arguments{program,  "build", "--quiet",  "-o", output.string(),
                                     "--name", name,    "--extern", "*"};
  for (size_t i = 0; i < loose.modules.size(); ++i) {
    const auto file = directory.path() / fmt::format("module{}.bc", i);
    TC_CHECK(write_file_atomically(file, loose.modules[i]));
    arguments.push_back(file.string());
  }
  TC_CHECK(write_file_atomically(directory.path() / "module0.deps", as_bytes(loose.dependencies)));
  TC_ASSIGN(const auto finished, run_program(arguments));
  if (!finished.exit.success())
    return fail(TC_ERR_INVALID, "the bitcode of '{}' cannot be packed: {} {}; its messages are on stderr", name,
                program, finished.exit.text());
  TC_ASSIGN(const auto bytes, read_file(output, BundleLimits::bundle_bytes));
  return Bundle::read(bytes);
}

}  // namespace tc::ucp
