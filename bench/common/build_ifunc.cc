// SPDX-License-Identifier: Apache-2.0
#include "common/build_ifunc.h"

#include "base/file.h"
#include "base/process.h"
#include "common/sibling.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

namespace tc::bench {

Result<Bytes> build_ifunc(const std::string& name, const std::vector<SourceFile>& files) {
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto input = scratch.path() / files.at(0).name, output = scratch.path() / "out.ifunc";
  for (const auto& file : files) TC_CHECK(write_file_atomically(scratch.path() / file.name, file.text));
  TC_ASSIGN(const auto finished,
            run_program({sibling("ifunc-toolchain").string(), "build", "--quiet", "--name", name, "--target",
                         TargetTriple::host().text, "-o", output.string(), input.string()}));
  if (!finished.exit.success())
    return fail(TC_ERR_COMPILE, "{} cannot be built on this machine (the reason is above)", files.at(0).name);
  return read_file(output, BundleLimits::bundle_bytes);
}

}  // namespace tc::bench
