// SPDX-License-Identifier: Apache-2.0
#include "dapc/translations.h"

#include "common/build_ifunc.h"
#include "common/embedded.h"

TC_EMBED(chaser_julia, TC_CHASER_JULIA)
TC_EMBED(chaser_rust, TC_CHASER_RUST)

namespace tc::bench {

ChaseMode mode_in(const std::string& language) {
  return language == "rust" ? ChaseMode::ifunc_bitcode_rust : ChaseMode::ifunc_bitcode_julia;
}

Result<Bytes> build_chaser(const std::string& language) {
  return language == "rust" ? build_ifunc("chaser", {{"chaser.rs", chaser_rust()}})
                            : build_ifunc("chaser", {{"chaser.jl", chaser_julia()}});
}

}  // namespace tc::bench
