// SPDX-License-Identifier: Apache-2.0
//
// Languages whose compilers live in their own processes: Python (Numba) and Julia. Each has a package of ours that
// writes bitcode when asked, for the triple or, where it cannot, for its own machine:
//
//     python3 -m threechains.build SOURCE --name NAME --target TRIPLE -o OUT.bc      (or what has the same effect)
//     julia -e 'using ThreeChains; ThreeChains.build_main(ARGS)' SOURCE --name NAME --target TRIPLE -o OUT.bc
#include "base/file.h"
#include "toolchain/frontend.h"
#include "toolchain/process.h"
#include "wire/bundle.h"

namespace tc::toolchain {

namespace {

// EX_DATAERR of sysexits.h: the source is at fault, and what was said of it is all that there is to say.
constexpr int source_is_at_fault = 65;

// `-m threechains.build`, but the directory that we are in is no place for Python's modules: ifuncs have names like
// token.py and copy.py.
constexpr const char* run_python_package = R"(
import sys
sys.path[:] = filter(None, sys.path)
try:
    from threechains.build import main
except ModuleNotFoundError as error:
    sys.exit(f"{sys.executable}: {error}")
sys.exit(main())
)";

Result<Bytes> ask(std::vector<std::string> command, const std::filesystem::path& source, const std::string& triple,
                  const FrontEnd& front_end, std::string_view remedy) {
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto output = scratch.path() / "front.bc";
  command.insert(command.end(), {source.string(), "--name", front_end.name, "--target", triple, "-o", output.string()});
  command.insert(command.end(), front_end.flags.begin(), front_end.flags.end());
  TC_ASSIGN(const int status, run(command));
  if (status == source_is_at_fault)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (what is wrong stands above)", source.string(), triple);
  if (status != 0)
    return fail(TC_ERR_COMPILE, "{}: does not compile for {} (the compiler's words are above); {}", source.string(),
                triple, remedy);
  return read_file(output, BundleLimits::slice_bytes);
}

}  // namespace

Result<Bytes> compile_python(const std::filesystem::path& source, const std::string& triple,
                             const FrontEnd& front_end) {
  TC_ASSIGN(const auto python,
            find_tool("TC_PYTHON", {"python3"}, "install python3, and our package in it (pip install '.[numba]')"));
  return ask({python, "-c", run_python_package}, source, triple, front_end,
             fmt::format("{} must have our package with Numba: run \"{} -m pip install '.[numba]'\" at the root of "
                         "Three-Chains' sources, or set TC_PYTHON to a Python that has them",
                         python, python));
}

Result<Bytes> compile_julia(const std::filesystem::path& source, const std::string& triple, const FrontEnd& front_end) {
  TC_ASSIGN(const auto julia,
            find_tool("TC_JULIA", {"julia"}, "install Julia (scripts/julia fetches one, and is one for TC_JULIA)"));
  return ask({julia, "-e", "using ThreeChains; ThreeChains.build_main(ARGS)"}, source, triple, front_end,
             "it takes the package ThreeChains.jl (bindings/julia); put it on JULIA_LOAD_PATH");
}

}  // namespace tc::toolchain
