// SPDX-License-Identifier: Apache-2.0
#include "common/embedded.h"

#include "base/file.h"
#include "base/process.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

TC_EMBED(chaser_c, TC_CHASER_C)
TC_EMBED(chase_h, TC_CHASE_H)
TC_EMBED(chaser_julia, TC_CHASER_JULIA)
TC_EMBED(chaser_rust, TC_CHASER_RUST)

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

Result<Bytes> build_chaser(const std::string& language) {
  if (language == "c") return build_ifunc("chaser", {{"chaser.c", chaser_c()}, {"chase.h", chase_h()}});
  if (language == "rust") return build_ifunc("chaser", {{"chaser.rs", chaser_rust()}});
  return build_ifunc("chaser", {{"chaser.jl", chaser_julia()}});
}

}  // namespace tc::bench
